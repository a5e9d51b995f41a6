package identity_test

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestKeyHasKindPrefixAndSecret(t *testing.T) {
	for _, kind := range []identity.Kind{identity.KindAPI, identity.KindPreAuth, identity.KindSession} {
		form := regexp.MustCompile(`^` + string(kind) + `_([A-Za-z0-9]{12})_([A-Za-z0-9_-]{43,})$`)
		seen := map[string]bool{}
		for range 1000 {
			k := identity.NewKey(kind)
			parts := form.FindStringSubmatch(k.Text)
			if parts == nil || parts[1] != k.Prefix {
				t.Fatalf("%q with prefix %q", k.Text, k.Prefix)
			}
			secret, err := base64.RawURLEncoding.DecodeString(parts[2])
			if err != nil || len(secret)*8 < 256 {
				t.Fatalf("%d random bits: %v", len(secret)*8, err)
			}
			if k.Hash != mesh.Secret(sha256.Sum256([]byte(parts[2]))) {
				t.Fatal("what is kept is not the SHA-256 of the secret")
			}
			if seen[parts[1]] || seen[parts[2]] {
				t.Fatal("drawn twice")
			}
			seen[parts[1]], seen[parts[2]] = true, true
		}
	}
}

// All 62 characters must be equally likely: over 120,000 draws, the deviation stays
// within six sigma.
func TestPrefixPrefersNoCharacter(t *testing.T) {
	const keys = 10_000
	counts := map[rune]float64{}
	for range keys {
		for _, r := range identity.NewKey(identity.KindAPI).Prefix {
			counts[r]++
		}
	}
	expected := 12.0 * keys / 62
	for r, n := range counts {
		if math.Abs(n-expected) > 6*math.Sqrt(expected) {
			t.Errorf("%q came %.0f times, expected about %.0f", r, n, expected)
		}
	}
	if len(counts) != 62 {
		t.Errorf("%d different characters, want 62", len(counts))
	}
}

func TestMaskHidesTheSecret(t *testing.T) {
	if got := identity.Mask(identity.KindAPI, "7Qd0XhVb2mTa"); got != "flk_7Qd0XhVb2mTa_***" {
		t.Error(got)
	}
	if got := identity.Mask(identity.KindPreAuth, "b81KzQx0LmN4"); got != "flp_b81KzQx0LmN4_***" {
		t.Error(got)
	}
}

func TestKeysAreNamedByNumberPrefixMaskOrText(t *testing.T) {
	const prefix = "7Qd0XhVb2mTa"
	for text, want := range map[string]identity.Ref{
		prefix:                         {Prefix: prefix},
		"flk_" + prefix:                {Prefix: prefix},
		"flk_" + prefix + "_***":       {Prefix: prefix},
		"flk_" + prefix + "_s3cr_et-x": {Prefix: prefix},
		"7Qd0":                         {Prefix: "7Qd0"},
		"flk_7Qd0_***":                 {Prefix: "7Qd0"},
		"12":                           {ID: 12, Prefix: "12"},
		"0":                            {Prefix: "0"},
		"-3":                           {Prefix: "-3"},
		"012345678901":                 {Prefix: "012345678901"}, // twelve digits are a prefix, not an ID
		"":                             {},
		"flk_":                         {},
		"_":                            {},
		"flp_" + prefix + "_***":       {Prefix: "flp"}, // a key of the other kind refers to nothing
		"99999999999999999999":         {Prefix: "99999999999999999999"},
	} {
		if diff := cmp.Diff(want, identity.ParseRef(identity.KindAPI, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// world returns a snapshot with one key of each kind, valid until 1000.
func world(api, preAuth identity.Issued) *mesh.Snapshot {
	s, _ := mesh.Apply(mesh.Empty(), 1,
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: api.Prefix, Hash: api.Hash, Expiry: 1000, CreatedAt: 1}},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 2, Prefix: preAuth.Prefix, Hash: preAuth.Hash, Expiry: 1000, CreatedAt: 1}},
	)
	return s
}

func TestOnlyTheWholeKeyOpens(t *testing.T) {
	api, preAuth := identity.NewKey(identity.KindAPI), identity.NewKey(identity.KindPreAuth)
	s := world(api, preAuth)
	if k, ok := identity.APIKey(s, api.Text, 999); !ok || k.ID != 1 {
		t.Error("a valid API key is refused")
	}
	if k, ok := identity.PreAuthKey(s, preAuth.Text); !ok || k.ID != 2 {
		t.Error("a pre-auth key is not found")
	}
	if _, ok := identity.APIKey(s, api.Text, 1000); ok {
		t.Error("an expired API key opens")
	}
	secret := api.Text[len("flk_")+12+1:]
	hash := string(api.Hash[:])
	for _, text := range []string{
		"", "_", "__", "flk_", "flk__", secret, api.Prefix, api.Text[:len(api.Text)-1], api.Text + "x", " " + api.Text, api.Text + "\n",
		"flk__" + secret, "flk_" + api.Prefix + "_", "flk_" + api.Prefix + "_" + hash, "FLK_" + api.Prefix + "_" + secret,
		"flp_" + api.Prefix + "_" + secret, "flk_" + preAuth.Prefix + "_" + secret, preAuth.Text, identity.Mask(identity.KindAPI, api.Prefix),
		api.Text + strings.Repeat("x", 1000), strings.Repeat("_", 1000),
	} {
		if _, ok := identity.APIKey(s, text, 999); ok {
			t.Errorf("%q opens", text)
		}
	}
	for _, text := range []string{"", "flp__", api.Text, preAuth.Text + "x", "flk" + preAuth.Text[3:], identity.Mask(identity.KindPreAuth, preAuth.Prefix)} {
		if _, ok := identity.PreAuthKey(s, text); ok {
			t.Errorf("%q is taken for the pre-auth key", text)
		}
	}
}

// When no key is found, the comparison uses an all-zero hash, which no text may match.
func TestNoKeyMatchesNothing(t *testing.T) {
	s := mesh.Empty()
	for _, text := range []string{"", "flk__", "flk_AAAAAAAAAAAA_" + strings.Repeat("\x00", 32)} {
		if _, ok := identity.APIKey(s, text, 1); ok {
			t.Errorf("%q opens an empty world", text)
		}
	}
}

// Every lookup takes the same steps, whether the key exists or not, so all of them
// allocate the same amount of memory.
func TestInvalidKeysTakeEqualSteps(t *testing.T) {
	api := identity.NewKey(identity.KindAPI)
	s := world(api, identity.NewKey(identity.KindPreAuth))
	other := identity.NewKey(identity.KindAPI).Text
	wrong := "flk_" + api.Prefix + other[len("flk_")+12:]
	cost := func(text string, now mesh.Time) float64 {
		return testing.AllocsPerRun(100, func() { identity.APIKey(s, text, now) })
	}
	unknown, wrongSecret, expired := cost(other, 1), cost(wrong, 1), cost(api.Text, 1000)
	if unknown != wrongSecret || unknown != expired {
		t.Errorf("allocations: unknown %v, wrong %v, expired %v", unknown, wrongSecret, expired)
	}
}

func FuzzAPIKey(f *testing.F) {
	api := identity.NewKey(identity.KindAPI)
	s := world(api, identity.NewKey(identity.KindPreAuth))
	for _, text := range []string{"", "flk_a_b", "KEY", "KEYx", "flk_12", "a_b_c_d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "KEY", api.Text)
		if _, ok := identity.APIKey(s, text, 1); ok != (text == api.Text) {
			t.Fatalf("%q opens: %v", text, ok)
		}
		if ref := identity.ParseRef(identity.KindAPI, text); strings.Contains(ref.Prefix, "_") && len(ref.Prefix) != 12 && len(ref.Prefix) != 10 && len(ref.Prefix) != 7 {
			t.Fatalf("%q names the prefix %q", text, ref.Prefix)
		}
	})
}

// Keys expire by the clock of the database. The clock of this machine may be behind it.
func TestEndedKeyStaysEndedWhateverThisClockSays(t *testing.T) {
	issued := identity.NewKey(identity.KindAPI)
	const ended = mesh.Time(2_000_000)
	d := mesh.Empty().Edit()
	d.Apply(1, mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: issued.Prefix, Hash: issued.Hash, Expiry: ended}})
	d.Stamp(ended, mesh.BatchID{})
	if _, ok := identity.APIKey(d.Freeze(), issued.Text, ended-1_000_000); ok {
		t.Fatal("a key that was ended opens the door to whose clock is a second behind")
	}
}

func TestOnlyTheWholeTokenOpensASession(t *testing.T) {
	issued, api := identity.NewKey(identity.KindSession), identity.NewKey(identity.KindAPI)
	s, _ := mesh.Apply(world(api, identity.NewKey(identity.KindPreAuth)), 2,
		mesh.SessionPut{Session: &mesh.Session{ID: 3, Prefix: issued.Prefix, Hash: issued.Hash, User: 1, Expiry: 1000}})
	if v, ok := identity.Session(s, issued.Text, 999); !ok || v.ID != 3 {
		t.Error("a valid session is refused")
	}
	if _, ok := identity.Session(s, issued.Text, 1000); ok {
		t.Error("an expired session opens")
	}
	if _, ok := identity.APIKey(s, issued.Text, 999); ok {
		t.Error("a session opens as an API key")
	}
	secret := issued.Text[len("fls_")+12+1:]
	for _, text := range []string{
		"", "fls_", "fls__", "fls__" + secret, secret, issued.Prefix, issued.Text + "x", issued.Text[:len(issued.Text)-1], "flk_" + issued.Prefix + "_" + secret,
		"fls_" + api.Prefix + "_" + secret, "fls_" + issued.Prefix + "_" + string(issued.Hash[:]), api.Text, "fls" + api.Text[3:], identity.Mask(identity.KindSession, issued.Prefix),
	} {
		if _, ok := identity.Session(s, text, 999); ok {
			t.Errorf("%q opens", text)
		}
	}
	wrong := "fls_" + issued.Prefix + identity.NewKey(identity.KindSession).Text[len("fls_")+12:]
	cost := func(text string, now mesh.Time) float64 {
		return testing.AllocsPerRun(100, func() { identity.Session(s, text, now) })
	}
	if a, b, c := cost("fls"+api.Text[3:], 1), cost(wrong, 1), cost(issued.Text, 1000); a != b || a != c {
		t.Errorf("allocations: unknown %v, wrong %v, expired %v", a, b, c)
	}
}
