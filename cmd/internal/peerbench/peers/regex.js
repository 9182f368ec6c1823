(function (n) {
  const text = Array.from({ length: n }, (_, i) => `on 2026-${10 + (i % 3)}-${10 + (i % 19)} user=u${i % 100} cost=${(i * 37) % 1000} ok; `).join("");
  const pairs = [...text.matchAll(/(\w+)=(\w+)/g)];
  const costs = pairs.filter((p) => p[1] === "cost").map((p) => parseInt(p[2], 10));
  const dates = new Set(text.match(/[0-9]{4}-[0-9]{2}-[0-9]{2}/g));
  const masked = text.replace(/user=\w+/g, "user=*");
  return costs.reduce((a, b) => a + b) + dates.size * 1000000 + masked.length;
})
