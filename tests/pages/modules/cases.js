// Collects the cases of a module of tests, and runs them.

const cases = [];

export function test(name, run) {
  cases.push({ name, run });
}

export function equal(actual, expected, about = "") {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${about} ${left} is not ${right}`);
}

// The failures of all cases so far, as text.
export async function run() {
  const failures = [];
  for (const { name, run: attempt } of cases) {
    try {
      await attempt();
    } catch (error) {
      failures.push(`${name}: ${error.message}`);
    }
  }
  return { count: cases.length, failures };
}
