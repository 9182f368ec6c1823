// Keeps the playground for when there is no network. VERSION is of its files.
const version = "VERSION";
const files = ["./", "index.html", "app.js", "worker.js", "pif.js", "style.css", "icon.svg", "pif.wasm.gz"];
addEventListener("install", (event) => event.waitUntil(caches.open(version).then((cache) => cache.addAll(files)).then(() => skipWaiting())));
addEventListener("activate", (event) => event.waitUntil(caches.keys().then((keys) => Promise.all(keys.filter((key) => key !== version).map((key) => caches.delete(key)))).then(() => clients.claim())));
addEventListener("fetch", (event) => event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((kept) => kept ?? fetch(event.request))));
