(function (n) {
  const customers = Array.from({ length: 1000 }, (_, i) => ({ id: i, name: `customer ${i}`, region: ["north", "south", "east", "west"][i % 4] }));
  const orders = Array.from({ length: n }, (_, i) => ({ id: i, customer: (i * 7919) % 1000, amount: (i * 31) % 500 }));
  const byId = new Map(customers.map((c) => [c.id, c]));
  const joined = orders.filter((o) => o.amount >= 50).map((o) => {
    const c = byId.get(o.customer);
    return { ...o, name: c.name, region: c.region };
  });
  const groups = new Map();
  for (const o of joined) {
    const g = groups.get(o.region);
    if (g) g.push(o); else groups.set(o.region, [o]);
  }
  const regions = [...groups.values()].map((os) => ({ orders: os.length, total: os.reduce((sum, o) => sum + o.amount, 0) }));
  const top = joined.slice().sort((a, b) => b.amount - a.amount).slice(0, 10);
  return regions.reduce((sum, r) => sum + r.total + r.orders, 0) + top.reduce((sum, o) => sum + o.id + o.name.length, 0);
})
