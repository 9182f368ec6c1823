(function (n) {
  const xs = Array.from({ length: n }, (_, i) => ((i * 7919) % 1000) + ((i * i) % 997));
  const bins = new Map();
  for (const x of xs) { const k = Math.floor(x / 100); bins.set(k, (bins.get(k) || 0) + 1); }
  const most = Math.max(...bins.values());
  const bars = [...bins].map(([bin, c]) => String(bin).padStart(3) + " " + "#".repeat(Math.floor((c * 50) / most))).join("\n");
  const sorted = xs.slice().sort((a, b) => a - b);
  const mean = Math.floor(xs.reduce((a, b) => a + b) / n);
  const spread = Math.floor(xs.reduce((sum, x) => sum + (x - mean) * (x - mean), 0) / n);
  return bars.length * 1000000 + sorted[Math.floor(n / 2)] * 1000 + mean + spread;
})
