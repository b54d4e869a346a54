// Puts the parts of the page that changed into their places. Everything works without it; then one refreshes by hand.
"use strict";
(() => {
  if (document.body.dataset.page !== "live" || !window.EventSource) return;
  // The one gate for markup: it comes from our own /events, where every value is escaped.
  const gate = window.trustedTypes
    ? window.trustedTypes.createPolicy("quartermaster", { createHTML: (markup) => markup })
    : { createHTML: (markup) => markup };
  const light = document.getElementById("live");
  const later = new Map();
  let heard = Date.now();
  let source = null;
  const ownTitle = document.querySelector("nav a[aria-current][href='/']") !== null;

  const put = (id, markup) => {
    if (id === "title") {
      if (ownTitle) document.title = new DOMParser().parseFromString(gate.createHTML(markup), "text/html").body.textContent;
      return;
    }
    const place = document.getElementById(id);
    if (!place) return;
    // Whoever types or stands on a button is not disturbed; the part follows when they leave it.
    const active = place.contains(document.activeElement) ? document.activeElement : null;
    if (active && active.matches("input, select, button")) {
      later.set(id, markup);
      return;
    }
    const link = active && active.getAttribute("href");
    const fold = active && active.parentElement.dataset.key;
    const open = [...place.querySelectorAll("details[open][data-key]")].map((details) => details.dataset.key);
    place.innerHTML = gate.createHTML(markup);
    for (const details of place.querySelectorAll("details[data-key]")) {
      if (open.includes(details.dataset.key)) details.open = true;
      if (fold && fold === details.dataset.key) details.querySelector("summary").focus();
    }
    if (link) [...place.querySelectorAll("a")].find((a) => a.getAttribute("href") === link)?.focus();
  };

  document.addEventListener("focusout", () => {
    setTimeout(() => {
      for (const [id, markup] of [...later]) {
        later.delete(id);
        put(id, markup);
      }
    });
  });

  const tell = () => {
    const silent = Math.round((Date.now() - heard) / 1000);
    const lost = silent > 15;
    light.hidden = false;
    light.classList.toggle("lost", lost);
    light.textContent = lost ? `no news for ${silent} s` : "live";
    document.body.classList.toggle("stale", lost);
  };

  const connect = () => {
    if (source) source.close();
    source = new EventSource("/events");
    const hear = () => {
      heard = Date.now();
      tell();
    };
    source.addEventListener("beat", hear);
    source.addEventListener("parts", (event) => {
      hear();
      for (const [id, markup] of Object.entries(JSON.parse(event.data))) put(id, markup);
    });
    source.addEventListener("error", () => {
      // Refused rather than interrupted: the browser does not try again by itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 10000);
    });
  };

  // A page that nobody sees needs no news.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source.close();
    } else if (source.readyState === EventSource.CLOSED) {
      connect();
    }
  });
  setInterval(() => document.hidden || tell(), 1000);
  connect();
})();
