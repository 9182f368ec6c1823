(function (n) {
  const meetings = Array.from({ length: n }, (_, i) => {
    const start = (i * 7919) % 100000;
    return { who: `p${i % 17}`, start, end: start + 5 + (i % 50) };
  });
  const groups = new Map();
  for (const m of meetings) {
    const g = groups.get(m.who);
    if (g) g.push(m); else groups.set(m.who, [m]);
  }
  const gaps = [];
  for (const ms of groups.values()) {
    let until = 0;
    for (const m of ms.slice().sort((a, b) => a.start - b.start)) {
      if (m.start > until) { gaps.push({ from: until, to: m.start }); until = m.end; }
      else until = Math.max(until, m.end);
    }
  }
  const clock = (t) => String(Math.floor(t / 60)).padStart(4, "0") + ":" + String(t % 60).padStart(2, "0");
  const shown = gaps.map((g) => clock(g.from) + "-" + clock(g.to)).join(", ");
  return gaps.reduce((sum, g) => sum + g.to - g.from, 0) + shown.length;
})
