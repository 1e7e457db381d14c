// Whether the tour is offered. This runs where the offer stands, before the model is there, so
// that nothing moves: who has put it away, or comes by such a link, is not asked.
"use strict";

const KEPT = "minigpt tour"; // in the browser, so that it stays away

function isKept() {
  try {
    return localStorage.getItem(KEPT) === "off";
  } catch {
    return false;
  }
}

document.getElementById("tour").hidden = isKept()
  || new URLSearchParams(location.hash.slice(1)).get("tour") === "off";
