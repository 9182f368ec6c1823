return function(n)
  local levels = {"INFO", "WARN", "ERROR", "DEBUG", "INFO"}
  local paths = {"/", "/login", "/api/orders", "/api/items", "/search", "/static/app.js", "/help"}
  local out = {}
  for i = 0, n - 1 do
    out[i + 1] = "2026-01-" .. 10 + i % 20 .. " " .. levels[i * 13 % 5 + 1] .. " " .. paths[i * 31 % 7 + 1] .. " " .. i * 7919 % 1500 .. "ms"
  end
  local log, found = table.concat(out, "\n"), {}
  for line in string.gmatch(log, "[^\n]+") do
    local parts = {}
    for p in string.gmatch(line, "[^ ]+") do parts[#parts + 1] = p end
    found[#found + 1] = {level = parts[2], path = parts[3], ms = tonumber((string.gsub(parts[4], "ms", "")))}
  end
  local groups, stats, errors = {}, {}, 0
  for _, e in ipairs(found) do
    local g = groups[e.path]
    if g then g[#g + 1] = e else groups[e.path] = {e} end
    if e.level == "ERROR" then errors = errors + 1 end
  end
  for path, es in pairs(groups) do
    local total, slowest = 0, 0
    for _, e in ipairs(es) do
      total = total + e.ms
      slowest = math.max(slowest, e.ms)
    end
    stats[#stats + 1] = {path = path, calls = #es, slowest = slowest, total = total}
  end
  table.sort(stats, function(a, b) return a.total > b.total end)
  local sum = errors * 1000
  for k = 1, 3 do
    local s = stats[k]
    sum = sum + math.floor(s.total / s.calls) + s.slowest + #s.path
  end
  return sum
end
