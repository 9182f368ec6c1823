package vectors

import (
	"encoding/json"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A design is an outcome that isn't the predecessor's, and why.
type design struct {
	Outcome
	reason string
}

func gives(result, typ string, steps uint64, reason string) design {
	return design{Outcome{Result: json.RawMessage(result), Type: typ, Steps: steps}, reason}
}

func fails(kind fault.Kind, reason string) design {
	return design{Outcome{Kind: kind}, reason}
}

// The reasons.
const (
	applies   = "the predecessor's documents show applications and cons as arrays, and code_of with a term: accepted"
	twice     = "duplicate keys are refused"
	asRecord  = "in an input an object without an operation is a record"
	noContext = "system context is not in the environment: these are names like others"
	lexical   = "self and the tool's name belong to the code a closure was made in, and code run by eval has none"
	noTool    = "an input has no tool"
	nowhere   = "continue is legal in tail position of a tool's function only"
	openTool  = "a tool that is no lambda and has one free variable is a function of it"
	exact     = "integers are exact"
	library   = "the language has map"
	deeper    = "fuel is steps, not depth: this ends well within the budget"
)

// byDesign is the vectors whose outcome is not the predecessor's. It grows
// with the language: a later operation may turn a parse_error of a vector
// tagged extension into something else.
var byDesign = map[string]design{
	// public.jsonl
	"p0036": gives(`1`, "int", 4, applies),
	"p0047": gives(`[1]`, "list", 3, applies),
	"p0059": fails(fault.Unbound, applies),
	"p0068": gives(`[1]`, "list", 31, library),
	"p0069": fails(fault.ParseError, twice),
	"p0070": fails(fault.ParseError, twice),
	"p0219": gives(`{"a":1}`, "record", 5, asRecord),
	"p0237": gives(`{"foo":1}`, "record", 5, asRecord),
	"p0238": gives(`{}`, "record", 4, asRecord),
	"p0244": gives(`3`, "int", 3, asRecord+", and here it isn't even evaluated"),
	"p0259": fails(fault.Unbound, noContext),
	"p0266": fails(fault.Unbound, noContext),
	"p0424": fails(fault.TypeError, library),
	"p0678": fails(fault.TypeError, library),
	"p0289": fails(fault.RuntimeError, lexical),
	"p0295": fails(fault.RuntimeError, noTool+", and neither has a function in it"),
	"p0296": fails(fault.RuntimeError, noTool),
	"p0297": fails(fault.Unbound, noContext),
	"p0298": fails(fault.Unbound, noContext),
	"p0301": fails(fault.RuntimeError, lexical),
	"p0302": fails(fault.RuntimeError, noContext+"; inline code has no self"),
	"p0303": gives(`{"pair":[7,"<function>"]}`, "pair", 6, noContext),
	"p0309": fails(fault.RuntimeError, noContext+"; inline code can't continue"),
	"p0317": fails(fault.ParseError, nowhere),
	"p0318": fails(fault.ParseError, nowhere),
	"p0319": fails(fault.ParseError, nowhere),
	"p0320": fails(fault.ParseError, nowhere),
	"p0322": fails(fault.ParseError, nowhere+", and here is none"),
	"p0323": fails(fault.RuntimeError, lexical),
	"p0325": fails(fault.RuntimeError, noTool),
	"p0341": gives(`42`, "int", 6, openTool),
	"p0638": fails(fault.RuntimeError, lexical),
	"p0705": fails(fault.RuntimeError, lexical),
	"p0960": fails(fault.RuntimeError, lexical),

	// fuel.jsonl
	"f001": gives(`[14777,0]`, "list", 266070, deeper),
	"f002": gives(`{"pair":[true,-2647263469]}`, "pair", 1600834, deeper),
	"f003": gives(`1`, "int", 290260, deeper),
	// 34,175 multiplications by 1000: 580,983 terms, the rest for the size.
	"f004": gives(`{"int":"19`+strings.Repeat("000", 34175)+`"}`, "int", 1985254, deeper),
	"f005": fails(fault.RuntimeError, deeper+"; at the bottom "+lexical),
	"f006": gives(`{"pair":[-9,66919]}`, "pair", 593964, deeper),
	"f007": gives(`"-"`, "string", 199889, deeper),
	"f020": gives(ones(10000), "list", 20001, deeper),
	"f021": gives(`9999`, "int", 20000, deeper),
	"f022": gives(`9999`, "int", 69997, deeper),
	"f023": gives(`9999`, "int", 20003, deeper),
	"f024": gives(ones(10001), "list", 20003, deeper),
	"f025": gives(`10000`, "int", 20002, deeper),
	"f026": gives(`10000`, "int", 70004, deeper),
	"f027": gives(`10000`, "int", 20005, deeper),
	"f033": gives(`5556111`, "int", 36671, deeper),
	"f034": gives(`5559445`, "int", 36682, deeper),
	"f035": gives(`12502500`, "int", 55008, deeper),
	"f040": gives(`0`, "int", 44999, deeper),
	"f041": gives(`0`, "int", 45008, deeper),
	"f042": gives(`0`, "int", 180008, deeper),

	// overflow.jsonl
	"o01": gives(`9223372036854775808`, "int", 3, exact),
	"o02": gives(`-9223372036854775809`, "int", 3, exact),
	"o03": gives(`18446744073709551616`, "int", 3, exact),
	"o04": gives(`9223372036854775808`, "int", 1, exact),
	"o05": gives(`10000000000000000000`, "int", 1, exact),
	"o06": gives(`100000000000000000000`, "int", 1, exact),
	"o07": gives(`123456789012345678901234567890`, "int", 1, exact),
	"o08": gives(`9223372036854775808`, "int", 3, exact),
	"o11": gives(`1`+strings.Repeat("0", 400), "int", 4, exact),
	"o12": gives(`9007199254740993`, "int", 4, exact),
	"o13": gives(`18446744073709551616`, "int", 4, exact),
	"o14": gives(`1`+strings.Repeat("0", 300), "int", 4, exact),
	"o15": gives(`51090942171709440000`, "int", 228, exact),
	"o16": gives(`15511210043330985984000000`, "int", 272, exact),
	"o17": gives(`544344939077443064003729240247842752644293064388798874532860126869671081148416000000000000000`, "int", 723, exact),
}

// ones is a list of n ones as JSON.
func ones(n int) string { return "[1" + strings.Repeat(",1", n-1) + "]" }
