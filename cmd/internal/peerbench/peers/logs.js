(function (n) {
  const levels = ["INFO", "WARN", "ERROR", "DEBUG", "INFO"];
  const paths = ["/", "/login", "/api/orders", "/api/items", "/search", "/static/app.js", "/help"];
  const log = Array.from({ length: n }, (_, i) => `2026-01-${10 + (i % 20)} ${levels[(i * 13) % 5]} ${paths[(i * 31) % 7]} ${(i * 7919) % 1500}ms`).join("\n");
  const found = log.split("\n").map((line) => {
    const parts = line.split(" ");
    return { level: parts[1], path: parts[2], ms: parseInt(parts[3].replace("ms", ""), 10) };
  });
  const groups = new Map();
  for (const e of found) {
    const g = groups.get(e.path);
    if (g) g.push(e); else groups.set(e.path, [e]);
  }
  const stats = [...groups].map(([path, es]) => {
    const times = es.map((e) => e.ms);
    return { path, calls: es.length, slowest: times.reduce((a, b) => Math.max(a, b)), total: times.reduce((a, b) => a + b) };
  });
  const top = stats.sort((a, b) => b.total - a.total).slice(0, 3);
  return found.filter((e) => e.level === "ERROR").length * 1000 +
    top.reduce((sum, s) => sum + Math.floor(s.total / s.calls) + s.slowest + s.path.length, 0);
})
