package text

// A tokKind is a kind of token of the text form.
type tokKind uint8

// The kinds of tokens. Keywords come last.
const (
	tokEnd tokKind = iota
	tokBad
	tokName
	tokQuoted // a name in backquotes
	tokInt
	tokDec
	tokString
	tokTool   // @name
	tokEffect // !fs.read
	tokBang   // ! before what is to be the opposite
	tokOpen
	tokClose
	tokOpenList
	tokCloseList
	tokOpenBrace
	tokCloseBrace
	tokQuote       // '{
	tokTemplate    // $"
	tokTemplateEnd // its "
	tokChunk       // text of a template
	tokLambda      // \ before a function's parameters, and lambda, as other languages write it
	tokComma
	tokSemi
	tokColon
	tokDot
	tokRest
	tokPrim // ::
	tokArrow
	tokPower    // **
	tokOptional // ?.
	tokBind
	tokBar
	tokPipe
	tokAsk     // ?
	tokDefault // ??
	tokEither  // ||, read as or
	tokBoth    // &&, read as and
	tokSame    // ===, read as ==
	tokOther   // !==, read as !=
	tokEq
	tokNe
	tokLt
	tokLte
	tokGt
	tokGte
	tokPlus
	tokMinus
	tokConcat
	tokTimes
	tokDiv
	tokMod
	tokLet
	tokIn
	tokIf
	tokThen
	tokElse
	tokMatch
	tokTrue
	tokFalse
	tokNull
	tokSelf
	tokAnd
	tokOr
	tokNot
	tokKinds
)

// spelled is how tokens with one spelling are written.
var spelled = [tokKinds]string{
	tokOpen: "(", tokClose: ")", tokOpenList: "[", tokCloseList: "]", tokOpenBrace: "{", tokCloseBrace: "}",
	tokQuote: "'{", tokComma: ",", tokSemi: ";", tokColon: ":", tokDot: ".", tokRest: "...", tokPrim: "::", tokArrow: "=>", tokPower: "**", tokOptional: "?.", tokBind: "=", tokBar: "|",
	tokPipe: "|>", tokAsk: "?", tokDefault: "??", tokEither: "||", tokBoth: "&&", tokSame: "===", tokOther: "!==", tokEq: "==", tokNe: "!=", tokLt: "<", tokLte: "<=", tokGt: ">", tokGte: ">=",
	tokPlus: "+", tokMinus: "-", tokConcat: "++", tokTimes: "*", tokDiv: "/", tokMod: "%",
	tokLet: "let", tokIn: "in", tokIf: "if", tokThen: "then", tokElse: "else", tokMatch: "match",
	tokTrue: "true", tokFalse: "false", tokNull: "null", tokSelf: "self", tokAnd: "and", tokOr: "or", tokNot: "not",
}

// keywords are the words that are no names.
var keywords = func() map[string]tokKind {
	m := map[string]tokKind{}
	for k := tokLet; k < tokKinds; k++ {
		m[spelled[k]] = k
	}
	return m
}()

// Keywords gives the words of the text form that can't be names unless they
// stand in backquotes.
func Keywords() []string { return spelled[tokLet:tokKinds:tokKinds] }

// Operators gives the infix operators of the text form that are no words.
func Operators() []string { return spelled[tokPipe:tokLet:tokLet] }

// word reports whether a token is a name or a keyword, which both may stand
// as a key or after a point.
func (k tokKind) word() bool { return k == tokName || k >= tokLet }

// closes reports whether a token ends what a bracket began.
func (k tokKind) closes() bool {
	return k == tokTemplateEnd || k == tokClose || k == tokCloseList || k == tokCloseBrace
}

// ends reports whether an expression may end with a token.
func (k tokKind) ends() bool {
	return k.closes() || k >= tokName && k <= tokString || k >= tokTrue && k <= tokSelf
}

// opens reports whether a token is a bracket that another must close.
func (k tokKind) opens() bool {
	return k == tokTemplate || k == tokOpen || k == tokOpenList || k == tokOpenBrace || k == tokQuote
}

// A token is a part of the source. Strings and names are decoded where they
// are used.
type token struct {
	kind     tokKind
	off, end int32
}

// The levels of precedence, the loosest first. An operand is written without
// parentheses where its level is at least what its place asks for.
const (
	levelWhole   = iota // functions, let, if, match: as far right as they can
	levelPipe           // |>
	levelIf             // c ? a : b
	levelDefault        // a ?? b
	levelOr             // or ||
	levelAnd            // and &&
	levelNot            // not
	levelCompare        // == != < <= > >=
	levelAdd            // + - ++
	levelMul            // * / %
	levelMinus          // -x
	levelPostfix        // f(x), r.k
	levelAtom
)

// levels is the level of each infix operator; 0 for what is none.
var levels = [tokKinds]uint8{
	tokPipe: levelPipe, tokAsk: levelIf, tokDefault: levelDefault, tokOr: levelOr, tokEither: levelOr, tokAnd: levelAnd, tokBoth: levelAnd,
	tokSame: levelCompare, tokOther: levelCompare, tokEq: levelCompare, tokNe: levelCompare, tokLt: levelCompare, tokLte: levelCompare, tokGt: levelCompare, tokGte: levelCompare,
	tokPlus: levelAdd, tokMinus: levelAdd, tokConcat: levelAdd,
	tokTimes: levelMul, tokDiv: levelMul, tokMod: levelMul,
}
