// Command browser opens the page in Chromium: its tests hold every view against what a person
// needs to see, and
//
//	go run . shots DIR
//
// writes a picture of each view, for cmd/README.md.
package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func main() {
	if len(os.Args) != 3 || os.Args[1] != "shots" {
		fmt.Fprintln(os.Stderr, "usage: go run . shots DIR")
		os.Exit(2)
	}
	if err := shots(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A screen is a view with its address and how it is pictured.
type screen struct {
	name, path string
	dark       bool
	width      int64
	height     int64 // 0: all of it
}

// screens is the views there are; run and denied are runs to show.
func screens(run, denied string) []screen {
	const p = "/p/claude-code/"
	return []screen{
		{name: "overview", path: p},
		{name: "tools", path: p + "tools"},
		{name: "tool", path: p + "tool?name=digest"},
		{name: "diff", path: p + "diff?name=invoice_total&a=1&b=2"},
		{name: "runs", path: p + "runs"},
		{name: "run", path: p + "run?id=" + run},
		{name: "denied", path: p + "run?id=" + denied},
		{name: "replay", path: p + "replay?id=" + run},
		{name: "steps", path: p + "steps?id=" + run + "&at=12"},
		{name: "flame", path: p + "flame?id=" + run},
		{name: "authority", path: p + "authority"},
		{name: "reach", path: p + "authority?tool=digest"},
		{name: "flow", path: p + "flow?week=1"},
		{name: "questions", path: p + "questions"},
		{name: "servers", path: p + "servers?name=shop"},
		{name: "journal", path: p + "events"},
	}
}

// shots writes a picture of each view.
func shots(out string) error {
	dir, err := os.MkdirTemp("", "mcp-pif-shots-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := &world{dir: dir}
	if w.binary, err = build(dir); err != nil {
		return err
	}
	if err := w.populate(); err != nil {
		return err
	}
	link, err := w.open()
	if err != nil {
		return err
	}
	defer w.close()
	run, err := w.runOf("digest", "ok")
	if err != nil {
		return err
	}
	denied, err := w.runOf("read_note", "denied")
	if err != nil {
		return err
	}
	ctx, stop := browser(context.Background())
	defer stop()
	if link, err = w.another(); err != nil {
		return err
	}
	base, err := enter(ctx, link)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, s := range screens(run, denied) {
		s.width, s.height = 1280, 800
		if os.Getenv("PIF_SHOTS") == "all" {
			s.height = 0
		}
		for _, dark := range []bool{false, true} {
			if dark && os.Getenv("PIF_SHOTS") != "all" && s.name != "authority" && s.name != "run" {
				continue
			}
			name := s.name
			if s.dark = dark; dark {
				name += "-dark"
			}
			if err := shoot(ctx, base, s, filepath.Join(out, name+".png")); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if s.name == "tools" || s.name == "run" || os.Getenv("PIF_SHOTS") == "all" {
			s.width, s.height, s.dark = 360, 740, false
			if err := shoot(ctx, base, s, filepath.Join(out, s.name+"-narrow.png")); err != nil {
				return err
			}
		}
	}
	return nil
}

// browser starts Chromium, which leaves files where its temporary folder is.
func browser(ctx context.Context) (context.Context, context.CancelFunc) {
	temp, err := os.MkdirTemp("", "pif-browser-*")
	if err != nil {
		temp = os.TempDir()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Env("TMPDIR="+temp))
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(allocator)
	return tab, func() {
		cancel()
		end()
		if err == nil {
			os.RemoveAll(temp)
		}
	}
}

// enter opens the page with its link, and gives where it is.
func enter(ctx context.Context, link string) (base string, err error) {
	if _, err := chromedp.Run(ctx, chromedp.Navigate(link)); err != nil {
		return "", err
	}
	// The page of the link goes on by itself.
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if at, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.pathname")); err == nil && at != "/enter" {
			return chromedp.Run(ctx, chromedp.Evaluate[string]("location.origin"))
		}
	}
	return "", fmt.Errorf("the page didn't open")
}

// show goes to a view as it is meant to be seen.
func show(ctx context.Context, base string, s screen) error {
	theme := "light"
	if s.dark {
		theme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		return err
	}
	return chromedp.Do(ctx, chromedp.EmulateViewport(s.width, max(s.height, 800)), chromedp.Navigate(base+s.path))
}

func shoot(ctx context.Context, base string, s screen, file string) error {
	if err := show(ctx, base, s); err != nil {
		return err
	}
	take := chromedp.CaptureScreenshot()
	if s.height == 0 {
		take = chromedp.FullScreenshot(100)
	}
	picture, err := chromedp.Run(ctx, take)
	if err == nil {
		picture, err = shrink(picture)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}

// shrink writes a picture with 256 colours: the most frequent, each far enough from the others
// that rare ones have room.
func shrink(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	often := map[color.RGBA]int{}
	b := from.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			often[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(often), func(a, b color.RGBA) int { return often[b] - often[a] })
	to := image.NewPaletted(b, nil)
	var chosen []color.RGBA
	for _, c := range colours {
		near := func(o color.RGBA) bool { return apart(c.R, o.R)+apart(c.G, o.G)+apart(c.B, o.B) < 24 }
		if len(chosen) < 256 && !slices.ContainsFunc(chosen, near) {
			chosen, to.Palette = append(chosen, c), append(to.Palette, c)
		}
	}
	draw.Draw(to, b, from, b.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
