// The language of the console: that of whoever has signed in, until they choose the other one.

import { createStore, useStore } from "../shared/store.js";

const store = createStore({ locale: navigator.language?.startsWith("en") ? "en" : "tr", chosen: false });

export const language = {
  follow(locale) {
    if (!store.get().chosen) store.set({ locale });
  },
  switch() {
    store.set(({ locale }) => ({ locale: locale === "tr" ? "en" : "tr", chosen: true }));
  },
};

export function followLanguage() {
  return useStore(store).locale;
}
