local floor, rep = math.floor, string.rep
local function pad(s, width) return rep("0", width - #s) .. s end
local function clock(t) return pad(tostring(floor(t / 60)), 4) .. ":" .. pad(tostring(t % 60), 2) end
return function(n)
  local groups, gaps, shown, sum = {}, {}, {}, 0
  for i = 0, n - 1 do
    local start = i * 7919 % 100000
    local m = {who = "p" .. i % 17, start = start, stop = start + 5 + i % 50}
    local g = groups[m.who]
    if g then g[#g + 1] = m else groups[m.who] = {m} end
  end
  for _, ms in pairs(groups) do
    table.sort(ms, function(a, b) return a.start < b.start end)
    local till = 0
    for _, m in ipairs(ms) do
      if m.start > till then
        gaps[#gaps + 1] = {from = till, to = m.start}
        till = m.stop
      else
        till = math.max(till, m.stop)
      end
    end
  end
  for i, g in ipairs(gaps) do
    shown[i] = clock(g.from) .. "-" .. clock(g.to)
    sum = sum + g.to - g.from
  end
  return sum + #table.concat(shown, ", ")
end
