// Checks a directory of tiles (C2SP tlog-tiles) with nothing but the verifier key, by the code
// of Go's checksum database: the signed note, every tile, every entry, and proofs from tiles.
//
//	check-tiles DIRECTORY KEY [OLD-CHECKPOINT]
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func fail(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// tiles reads tiles where C2SP has them: without the height in the path.
type tiles struct{ directory string }

func (t tiles) Height() int { return 8 }

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range wanted {
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		data, err := os.ReadFile(filepath.Join(t.directory, path))
		if err != nil {
			return nil, err
		}
		found = append(found, data)
	}
	return found, nil
}

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func open(path, key string) tlog.Tree {
	text, err := os.ReadFile(path)
	must(err)
	verifier, err := note.NewVerifier(key)
	must(err)
	opened, err := note.Open(text, note.VerifierList(verifier))
	must(err)
	lines := strings.Split(opened.Text, "\n")
	if lines[0] != verifier.Name() {
		fail("the checkpoint is of %q", lines[0])
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err)
	root, err := base64.StdEncoding.DecodeString(lines[2])
	must(err)
	tree := tlog.Tree{N: size}
	copy(tree.Hash[:], root)
	return tree
}

// leaves reads every entry of every bundle.
func leaves(directory string, size int64) [][]byte {
	var found [][]byte
	for number := int64(0); number*256 < size; number++ {
		width := size - number*256
		if width > 256 {
			width = 256
		}
		tile := tlog.Tile{H: 8, L: -1, N: number, W: int(width)}
		path := strings.Replace(tile.Path(), "tile/8/data/", "tile/entries/", 1)
		data, err := os.ReadFile(filepath.Join(directory, path))
		must(err)
		for len(data) > 0 {
			length := int(binary.BigEndian.Uint16(data))
			found = append(found, data[2:2+length])
			data = data[2+length:]
		}
	}
	return found
}

func main() {
	directory, key := os.Args[1], os.Args[2]
	tree := open(filepath.Join(directory, "checkpoint"), key)
	reader := tlog.TileHashReader(tree, tiles{directory})
	entries := leaves(directory, tree.N)
	if int64(len(entries)) != tree.N {
		fail("%d entries for a tree of %d", len(entries), tree.N)
	}
	for number, entry := range entries {
		hashes, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(number))})
		must(err)
		if hashes[0] != tlog.RecordHash(entry) {
			fail("entry %d is not the one in the tree", number)
		}
	}
	for number := int64(0); number < tree.N; number += 1 + tree.N/50 {
		proof, err := tlog.ProveRecord(tree.N, number, reader)
		must(err)
		must(tlog.CheckRecord(proof, tree.N, tree.Hash, number, tlog.RecordHash(entries[number])))
	}
	if len(os.Args) > 3 {
		old := open(os.Args[3], key)
		proof, err := tlog.ProveTree(tree.N, old.N, reader)
		must(err)
		must(tlog.CheckTree(proof, tree.N, tree.Hash, old.N, old.Hash))
		fmt.Printf("continues the tree of %d entries\n", old.N)
	}
	fmt.Printf("%d entries, each in the tree\n", tree.N)
}
