(function () {
  function move(a, b, st) {
    return { fst: st.fst + 1, snd: (st.snd * 31 + (a * 3 + b)) % 1000003 };
  }
  function hanoi(n, a, b, c, st) {
    return n === 0 ? st : hanoi(n - 1, c, b, a, move(a, b, hanoi(n - 1, a, c, b, st)));
  }
  return function (n) {
    var st = hanoi(n, 1, 2, 3, { fst: 0, snd: 7 });
    return st.fst * 1000003 + st.snd;
  };
})()
