return function(x) return x * x end
