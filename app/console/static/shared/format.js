// Times, distances and numbers as people read them. Dates follow the locale of the page.

import { currentLocale, word } from "./words.js";

// "9:41" until an hour, "1:02:05" from there.
export function countdown(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

// One unit is enough for a look: "40 s", "12 min", "3 h".
export function duration(seconds) {
  if (seconds < 59.5) return word("seconds", { count: Math.round(seconds) });
  if (seconds < 5400) return word("minutes", { count: Math.round(seconds / 60) });
  return word("hours", { count: Math.round(seconds / 3600) });
}

// For sentences that are read aloud.
export function durationInWords(seconds) {
  if (seconds < 60) return word("secondsInWords", { count: Math.ceil(seconds) });
  return word("minutesInWords", { count: Math.ceil(seconds / 60) });
}

export function metres(value) {
  const locale = localeTag();
  if (value < 1000) return `${Math.round(value).toLocaleString(locale)} m`;
  return `${(value / 1000).toLocaleString(locale, { maximumFractionDigits: 1 })} km`;
}

export function number(value) {
  return value.toLocaleString(localeTag());
}

export function clockTime(instant) {
  return new Date(instant).toLocaleTimeString(localeTag(), { hour: "2-digit", minute: "2-digit" });
}

export function dateAndTime(instant) {
  return new Date(instant).toLocaleString(localeTag(), { dateStyle: "medium", timeStyle: "short" });
}

export function firstName(name) {
  return name.trim().split(/\s+/)[0] ?? "";
}

// "+905550100002" as "+90 555 010 00 02"; other numbers stay as they are.
export function phoneNumber(value) {
  const parts = /^\+90(\d{3})(\d{3})(\d{2})(\d{2})$/.exec(value);
  return parts ? `+90 ${parts.slice(1).join(" ")}` : value;
}

function localeTag() {
  return currentLocale() === "en" ? "en-GB" : "tr-TR";
}
