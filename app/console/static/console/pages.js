// A list of the API whose further pages are read when somebody asks for more.

import { useRead } from "../shared/ui.js";
import { useCallback, useEffect, useState } from "../vendor/preact/preact.js";

// `read(cursor)` reads a page. Returns what `Read` of ui.js shows, with `more`, which is null on the last page, and
// `change(edit)`, which puts `edit(item)` in the place of each item.
export function usePages(read, causes) {
  const first = useRead(() => read(undefined), causes);
  const [list, setList] = useState(null);
  useEffect(() => setList(first.value), [first.value]);
  const more = async () => {
    const page = await read(list.nextCursor);
    setList((now) => (now === list ? { items: [...now.items, ...page.items], nextCursor: page.nextCursor } : now));
  };
  const change = useCallback((edit) => setList((now) => now && { ...now, items: now.items.map(edit) }), []);
  return { value: list?.items ?? null, error: first.error, again: first.again, more: list?.nextCursor ? more : null, change };
}
