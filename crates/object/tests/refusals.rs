//! Refusals of objects and of XDP programs: the error names the place, the problem and what to do.

use crate::common;

use common::refusal::{refused, say};
use common::{CLANGS, compile_text};
use millrace_object::load;
use millrace_tables::rows;

const XDP: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n";

#[test]
fn undefined_functions_by_name_and_line() {
    let errors = refused(
        XDP,
        "int missing(int x);\nSEC(\"xdp\") int f(struct xdp_md *c) {\n return missing(c->data); }\n",
        "undefined-symbol",
    );
    say(&errors, &["missing", "program.c:5", "section xdp"]);
}

#[test]
fn undefined_variables_by_name() {
    let errors = refused(
        XDP,
        "extern int missing; SEC(\"xdp\") int f(struct xdp_md *c) { return missing; }\n",
        "undefined-symbol",
    );
    say(&errors, &["missing"]);
}

#[test]
fn unknown_map_types_with_those_that_exist() {
    let errors = refused(
        XDP,
        "struct { __uint(type, BPF_MAP_TYPE_SOCKMAP); __uint(max_entries, 4); __type(key, int); \
         __type(value, int); } ports SEC(\".maps\");\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return bpf_redirect_map(&ports, 0, 0); }\n",
        "unknown-map-type",
    );
    say(&errors, &["SOCKMAP", "ports", "lru_hash", "ringbuf"]);
    let errors = refused(
        XDP,
        "struct { __uint(max_entries, 4); } odd SEC(\".maps\");\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return !bpf_map_lookup_elem(&odd, c); }\n",
        "unknown-map-type",
    );
    say(&errors, &["odd", "__uint(type"]);
}

#[test]
fn maps_in_maps() {
    const INNER: &str = "struct inner { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 4); \
         __type(key, int); __type(value, int); };\n";
    let outer = |before: &str, values: &str, start: &str| {
        format!(
            "{INNER}{before}struct {{ __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); \
             __uint(max_entries, 4); __type(key, int); {values} }} outer SEC(\".maps\"){start};\n\
             SEC(\"xdp\") int f(struct xdp_md *c) {{ return !bpf_map_lookup_elem(&outer, c); }}\n"
        )
    };
    let with = "__array(values, struct inner);";
    for (before, values, start, rule, words) in [
        (
            "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 5); __type(key, int); \
             __type(value, int); } one SEC(\".maps\");\n",
            with,
            " = { .values = { [2] = (void *)&one } }",
            "map-in-map",
            "element 2 is `one`",
        ),
        (
            "struct inner one SEC(\".maps\");\n",
            with,
            " = { .values = { [4] = &one } }",
            "map-in-map",
            "there is an element 4, and room for 4",
        ),
        (
            "int one;\n",
            with,
            " = { .values = { (void *)&one } }",
            "map-in-map",
            "element 0 is no map",
        ),
        (
            "",
            "__uint(value_size, 4);",
            "",
            "map-in-map",
            "does not say",
        ),
        (
            "",
            "__array(values, struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); \
             __uint(key_size, 4); __uint(value_size, 4); });",
            "",
            "map-in-map",
            "a prog_array cannot be the value",
        ),
        (
            "",
            "__array(values, struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 4); \
             __uint(key_size, 4); __array(values, struct inner); });",
            "",
            "map-declaration",
            "maps that hold maps",
        ),
        (
            "",
            "__array(values, int);",
            "",
            "map-declaration",
            "neither an array of maps",
        ),
        (
            "",
            "__array(values, struct { __uint(max_entries, 4); __type(key, int); __type(value, int); });",
            "",
            "unknown-map-type",
            "has no `type`",
        ),
        (
            "",
            "__array(values, struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 0x7fffffff); \
             __type(key, int); __type(value, long); });",
            "",
            "absurd-size",
            "2147483647 entries",
        ),
    ] {
        let errors = refused(XDP, &outer(before, values, start), rule);
        say(&errors, &[words]);
    }
}

/// Fields of a map's declaration, and a word of what is said.
const ABSURD: &str = r#"
__uint(type, 2); __uint(max_entries, 0x7fffffff); __type(key, int); __type(value, int); | 1 to 67108864
__uint(type, 1); __uint(max_entries, 8); __uint(key_size, 513); __type(value, int); | 1 to 512
__uint(type, 1); __uint(max_entries, 8); __type(key, int); __uint(value_size, 0x7fffffff); | 1 to 1048576
__uint(type, 2); __uint(max_entries, 67108864); __type(key, int); __uint(value_size, 1048576); | 64 GiB
__uint(type, 1); __uint(max_entries, 8); __type(key, int); | value of 0 bytes
__uint(type, 2); __uint(max_entries, 8); __type(key, __u64); __type(value, int); | 4 bytes
__uint(type, 27); __uint(max_entries, 5000); | power of two
__uint(type, 11); __uint(max_entries, 8); __type(key, __u64); __type(value, int); | BPF_F_NO_PREALLOC
__uint(type, 1); __uint(max_entries, 8); __uint(map_flags, 0x200); __type(key, int); __type(value, int); | 0x200
"#;

#[test]
fn absurd_sizes_with_what_would_be_sane() {
    let map = |fields: &str| {
        format!(
            "struct {{ {fields} }} big SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) {{ return !bpf_map_lookup_elem(&big, c); }}\n"
        )
    };
    for [fields, word] in rows(ABSURD) {
        let errors = refused(XDP, &map(&fields), "absurd-size");
        say(&errors, &["big", &word]);
    }
}

#[test]
fn contradictory_declarations() {
    let errors = refused(
        XDP,
        "struct { __uint(type, 1); __uint(max_entries, 8); __type(key, int); __uint(key_size, 8); \
         __type(value, int); } two SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) { return !bpf_map_lookup_elem(&two, c); }\n",
        "map-declaration",
    );
    say(&errors, &["two", "4", "8"]);
    let errors = refused(
        XDP,
        "struct { __uint(type, 1); __uint(max_entries, 8); __type(key, struct nowhere); \
         __type(value, int); } two SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) { return !bpf_map_lookup_elem(&two, c); }\n",
        "map-declaration",
    );
    say(&errors, &["key"]);
}

#[test]
fn objects_without_a_program() {
    let errors = refused(
        XDP,
        "SEC(\"tc\") int f(void *c) { return 0; }\n",
        "no-entry",
    );
    say(&errors, &["tc", "SEC(\"xdp\")"]);
    refused(XDP, "int x = 1;\n", "no-entry");
}

#[test]
fn pointers_in_initial_values() {
    let errors = refused(
        XDP,
        "static int a, b; static int *volatile const table[2] = { &a, &b };\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return *table[c->rx_queue_index & 1]; }\n",
        "pointer-in-data",
    );
    say(&errors, &["program.c"]);
}

#[test]
fn variables_in_unknown_sections() {
    let errors = refused(
        XDP,
        "static volatile int x SEC(\"mine\"); SEC(\"xdp\") int f(struct xdp_md *c) { return x; }\n",
        "unknown-section",
    );
    say(&errors, &["mine"]);
}

#[test]
fn functions_without_an_end() {
    let errors = refused(
        XDP,
        "SEC(\"xdp\") int f(struct xdp_md *c) { if (c->data) return 1; __builtin_unreachable(); }\n\
         SEC(\"xdp\") __attribute__((naked)) int g(struct xdp_md *c) { asm volatile(\"r0 = 0\"); }\n",
        "runs-past-end",
    );
    say(&errors, &["g"]);
}

#[test]
fn what_is_no_bpf_object() {
    let rule = |bytes: &[u8]| load(bytes, "x").unwrap_err().rule;
    assert_eq!(rule(b""), "not-elf");
    assert_eq!(rule(b"hello, world"), "not-elf");
    assert_eq!(rule(b"\x7fELF"), "not-bpf");
    let own = std::fs::read(std::env::current_exe().unwrap());
    // A test binary may be larger than what is read at all.
    assert!(matches!(rule(&own.unwrap()), "not-bpf" | "file-size"));
    let huge = vec![0; (64 << 20) + 1];
    assert_eq!(rule(&huge), "file-size");
    let missing = millrace_object::load_file(std::path::Path::new("/nowhere/x.o")).unwrap_err();
    assert_eq!(missing.rule, "unreadable");
    assert!(missing.to_string().contains("/nowhere/x.o"));
}

#[test]
fn big_endian_objects() {
    for clang in CLANGS {
        let text = format!("{XDP}SEC(\"xdp\") int f(struct xdp_md *c) {{ return 0; }}\n");
        let Some(bytes) = compile_text(clang, &text, &["-target", "bpfeb"]) else {
            continue;
        };
        assert_eq!(load(&bytes, "x").unwrap_err().rule, "big-endian", "{clang}");
    }
}
