// The way to the elder: how far, in which direction, and a link that opens the map app of the phone.

import { metres } from "../shared/format.js";
import { useStore } from "../shared/store.js";
import { Button, tell } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";
import { wayBetween } from "./compass.js";

export function WayCard({ to, place, sharing }) {
  const from = useStore(place).place;
  const way = from && wayBetween(from, to);
  const coordinates = `${to.lat.toFixed(5)}, ${to.lon.toFixed(5)}`;
  const copy = async () => {
    await navigator.clipboard.writeText(coordinates);
    tell(word("copied"));
  };
  return html`<section class="card way">
    <h2>${word("way")}</h2>
    ${way
      ? html`<p class="way-now"><${Arrow} bearing=${way.bearing} /><span><strong>${metres(Math.round(way.distanceM / 10) * 10)}</strong> · ${word(`direction_${way.direction}`)}</span></p>`
      : html`<p class="soft">${word("wayUnknown")}</p>
          <${Button} onClick=${sharing.start}>${word("locationStart")}<//>`}
    <div class="row">
      <a class="button" href=${mapAddress(to)}>${word("openMap")}</a>
      ${navigator.clipboard && html`<${Button} kind="bare place" onClick=${copy}><span>${word("copy")}</span> <span class="numbers soft small">${coordinates}</span><//>`}
    </div>
  </section>`;
}

// Phones of Apple do not know "geo:".
export function mapAddress({ lat, lon }, platform = navigator.platform ?? "") {
  const place = `${lat},${lon}`;
  return /^(iP|Mac)/.test(platform) ? `maps://?daddr=${place}` : `geo:${place}?q=${place}`;
}

// North is up, because a phone lies in the hand in any direction.
function Arrow({ bearing }) {
  return html`<svg viewBox="0 0 40 40" width="40" height="40" aria-hidden="true" class="arrow" style=${{ transform: `rotate(${Math.round(bearing)}deg)` }}>
    <circle cx="20" cy="20" r="19" />
    <path d="M20 6l8 24-8-5-8 5z" />
  </svg>`;
}
