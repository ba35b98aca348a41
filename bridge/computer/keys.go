package computer

import (
	"errors"
	"fmt"
	"slices"

	"drawbridge/bridge/keyname"
	"drawbridge/input"
)

// parseChord reads the keys of a keypress: modifiers in any order and at most
// one other key. key is empty when all are modifiers.
func parseChord(words []string) (mods []input.Key, key input.Key, err error) {
	for _, word := range words {
		for _, name := range keyname.Split(word) {
			k, err := lookUpKey(name)
			switch {
			case err != nil:
				return nil, "", err
			case k.Modifier():
				if !slices.Contains(mods, k) {
					mods = append(mods, k)
				}
			case key != "" && key != k:
				return nil, "", fmt.Errorf("holds two keys that are no modifiers, %q and %q; one chord takes modifiers and one key, so press them in two actions", key, k)
			default:
				key = k
			}
		}
	}
	if key == "" && len(mods) == 0 {
		return nil, "", errors.New(`is empty; name a key, such as ["ENTER"]`)
	}
	return mods, key, nil
}

// ParseChord reads a chord that is written as one word, such as
// "ctrl+option+escape": modifiers and exactly one key.
func ParseChord(word string) (mods []input.Key, key input.Key, err error) {
	mods, key, err = parseChord([]string{word})
	if err == nil && key == "" {
		err = errors.New("holds modifiers alone; one key besides is needed")
	}
	return mods, key, err
}

// parseModifiers reads the keys of a pointer action.
func parseModifiers(words []string) ([]input.Key, error) {
	if len(words) == 0 {
		return nil, nil
	}
	mods, key, err := parseChord(words)
	if err != nil {
		return nil, err
	}
	if key != "" {
		return nil, fmt.Errorf("holds %q, which is no modifier; a pointer action takes SHIFT, CTRL, ALT, CMD and FN", key)
	}
	return mods, nil
}

func lookUpKey(name string) (input.Key, error) {
	if k, ok := keyname.Resolve(name); ok {
		return k, nil
	}
	if name == "" {
		return "", errors.New(`holds an empty key name; the plus sign is "+" or "plus"`)
	}
	return "", fmt.Errorf("holds %s, which is no key%s; keys are names such as ENTER, CTRL, ArrowLeft, Page_Down, F1 to F24, minus, KP_Add, or one character", quote(name), didYouMean(name, keyname.Names))
}
