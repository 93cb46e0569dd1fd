import "./leaflet.js";

export default window.L;
