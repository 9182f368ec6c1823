(function (n) {
  const stock = ["The", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "And", "then", "sleeps", "in", "a", "warm", "Place", "until", "the", "morning", "comes"];
  const text = Array.from({ length: n }, (_, i) => stock[((i * i + i * 7) % 1013) % 19]).join(" ");
  const counts = new Map();
  for (const w of text.toLowerCase().split(" ")) counts.set(w, (counts.get(w) || 0) + 1);
  const top = [...counts].sort().map(([word, times]) => ({ word, times })).sort((a, b) => b.times - a.times).slice(0, 10);
  return counts.size * 1000000 + top.reduce((sum, c) => sum + c.times * c.word.length, 0);
})
