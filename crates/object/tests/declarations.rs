//! The ways in which public XDP programs declare maps and name programs, besides `.maps` and `xdp`.

use crate::common;

use common::refusal::{refused, say};
use common::{CLANGS, compile_text};
use millrace_object::program::{Nesting, StateObject};
use millrace_object::state::{array, hash};
use millrace_object::{Program, load, load_with};

const XDP: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n";

/// What each compiler here makes of a text, read.
fn programs(text: &str, flags: &[&str]) -> Vec<Program> {
    let text = format!("{XDP}{text}");
    let flags = [&["-Wno-all"], flags].concat();
    let objects = CLANGS
        .iter()
        .filter_map(|clang| compile_text(clang, &text, &flags));
    objects
        .map(|bytes| load(&bytes, "program").unwrap_or_else(|e| panic!("{e}")))
        .collect()
}

fn object<'a>(program: &'a Program, name: &str) -> &'a StateObject {
    program.objects.iter().find(|o| o.name == name).unwrap()
}

/// A program that uses a map `m` with a 4-byte key.
const USES_M: &str =
    "SEC(\"xdp\") int f(struct xdp_md *c) { int k = 0; return !bpf_map_lookup_elem(&m, &k); }\n";

#[test]
fn every_legacy_layout_is_read() {
    let layouts = [
        ("int type, key, value, entries;", "{ 2, 4, 8, 16 }", 0),
        (
            "int type, key, value, entries, flags;",
            "{ 1, 4, 8, 16, 1 }",
            1,
        ),
        (
            "int type, key, value, entries, flags, inner, node;",
            "{ 1, 4, 8, 16, 1, 0, 3 }",
            1,
        ),
        (
            "int type, key, value, entries, flags, id, pinning, inner_id, inner;",
            "{ 1, 4, 8, 16, 1, 7, 2, 0, 0 }",
            1,
        ),
        (
            "int type, key, value, entries, flags; void *inner; const char *path;",
            "{ 1, 4, 8, 16, 1, 0, \"/sys/fs/bpf/m\" }",
            1,
        ),
    ];
    for (fields, values, flags) in layouts {
        for section in ["maps", "maps/m"] {
            let text = format!("struct {{ {fields} }} m SEC(\"{section}\") = {values};\n{USES_M}");
            for program in programs(&text, &[]) {
                let m = object(&program, "m");
                let sizes = (m.key_bytes, m.value_bytes, m.capacity, m.flags);
                assert_eq!(sizes, (4, 8, 16, flags), "{fields}");
            }
        }
    }
}

#[test]
fn several_legacy_maps_without_type_information_stay_apart() {
    let text = format!(
        "struct def {{ int type, key, value, entries, flags; }};\n\
         struct def other SEC(\"maps\") = {{ 1, 8, 2, 5, 0 }};\n\
         struct def m SEC(\"maps\") = {{ 2, 4, 8, 16, 0 }};\n{USES_M}\
         SEC(\"xdp\") int g(struct xdp_md *c) {{ long k = 0; return !bpf_map_lookup_elem(&other, &k); }}\n"
    );
    for program in programs(&text, &["-g0"]) {
        let (m, other) = (object(&program, "m"), object(&program, "other"));
        assert_eq!((m.kind, m.capacity), (&array::KIND, 16));
        assert_eq!((other.kind, other.capacity), (&hash::KIND, 5));
        assert_eq!(program.entries.len(), 2);
    }
}

#[test]
fn a_legacy_declaration_that_says_more_is_refused() {
    for (fields, values, rule) in [
        ("int type, key, value;", "{ 1, 4, 8 }", "malformed"),
        (
            "int type, key, value, entries, flags, x, y, z;",
            "{ 1, 4, 8, 16, 0, 0, 0, 9 }",
            "map-declaration",
        ),
        (
            "int type, key, value, entries, flags, inner, node;",
            "{ 12, 4, 4, 16, 0, 2, 0 }",
            "map-in-map",
        ),
        (
            "int type, key, value, entries, flags, id, pinning, inner_id, inner;",
            "{ 12, 4, 4, 16, 0, 0, 0, 4, 0 }",
            "map-in-map",
        ),
    ] {
        let text = format!("struct {{ {fields} }} m SEC(\"maps\") = {values};\n{USES_M}");
        say(&refused(XDP, &text, rule), &["m"]);
    }
}

#[test]
fn maps_of_maps_are_declared_in_every_way() {
    const SAMPLES: &str = "struct def { int type, key, value, entries, flags, inner, node; };\n\
        struct def m SEC(\"maps\") = { 12, 4, 4, 16, 0, 1, 0 };\n\
        struct def one SEC(\"maps\") = { 1, 8, 2, 5, 0 };\n";
    const IPROUTE2: &str = "struct def { int type, key, value, entries, flags, id, pinning, inner_id, inner; };\n\
        struct def m SEC(\"maps\") = { 12, 4, 4, 16, 0, 0, 2, 42, 0 };\n\
        struct def one SEC(\"maps\") = { 1, 8, 2, 5, 0, 42, 0, 0, 3 };\n";
    const GOEBPF: &str = "struct def { int type, key, value, entries, flags; void *inner; const char *path; };\n\
        struct def one SEC(\"maps\") = { 1, 8, 2, 5, 0 };\n\
        struct def m SEC(\"maps\") = { 12, 4, 4, 16, 0, &one, 0 };\n";
    const BTF: &str = "struct like { __uint(type, 1); __uint(max_entries, 5); __uint(key_size, 8); \
        __uint(value_size, 2); } one SEC(\".maps\"), two SEC(\".maps\");\n\
        struct { __uint(type, 12); __uint(max_entries, 16); __uint(key_size, 4); \
        __array(values, struct like); } m SEC(\".maps\") = { .values = { [3] = &one, [9] = &two } };\n";
    // `static` maps are named by section and offset.
    let fixed = BTF.replace("struct like {", "static struct like {");
    for (text, held) in [
        (SAMPLES, &[][..]),
        (IPROUTE2, &[(3, "one")]),
        (GOEBPF, &[]),
        (BTF, &[(3, "one"), (9, "two")]),
        (&fixed, &[(3, "one"), (9, "two")]),
    ] {
        for program in programs(&format!("{text}{USES_M}"), &[]) {
            let Some(Nesting::Holds { shape, values }) = &object(&program, "m").nesting else {
                panic!("{text}: m holds no maps");
            };
            let shape = &program.objects[shape.0];
            assert_eq!(shape.name, "m.maps");
            assert!(shape.is_shape() && shape.bytes() == 0);
            let sizes = (shape.kind, shape.key_bytes, shape.value_bytes);
            assert_eq!((sizes, shape.capacity), ((&hash::KIND, 8, 2), 5), "{text}");
            let named: Vec<(u32, &str)> = values
                .iter()
                .map(|(index, map)| (*index, program.objects[map.0].name.as_str()))
                .collect();
            assert_eq!(named, held, "{text}");
        }
    }
}

#[test]
fn a_filters_hash_functions_are_those_it_asks_for() {
    let map = |extra: &str, key: &str| {
        format!(
            "struct {{ __uint(type, 30); __uint(max_entries, 100); __type(value, int); {extra}{key} }} \
             m SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) {{ int k = 0; \
             return bpf_map_peek_elem(&m, &k); }}\n"
        )
    };
    for (extra, rows) in [("", 5), ("__uint(map_extra, 3);", 3)] {
        for program in programs(&map(extra, ""), &[]) {
            assert_eq!(object(&program, "m").rows, rows);
        }
    }
    let refusals = [
        ("__uint(map_extra, 16);", "", "16 hash functions"),
        ("", "__type(key, int);", "has no key"),
    ];
    for (extra, key, what) in refusals {
        say(&refused(XDP, &map(extra, key), "absurd-size"), &[what]);
    }
    let array = "struct { __uint(type, 2); __uint(max_entries, 1); __type(key, int); \
        __type(value, int); __uint(map_extra, 3); } m SEC(\".maps\");\n";
    let text = format!("{array}{USES_M}");
    say(&refused(XDP, &text, "map-declaration"), &["map_extra"]);
}

#[test]
fn what_no_program_uses_may_be_declared_as_it_likes() {
    let text = format!(
        "struct {{ __uint(type, 15); __uint(max_entries, 4); __type(key, int); __type(value, int); }} sockets SEC(\".maps\");\n\
         struct {{ __uint(type, 2); __uint(max_entries, 0); __type(key, int); __type(value, int); }} open SEC(\".maps\");\n\
         struct {{ __uint(type, 2); __uint(max_entries, 4); __type(key, int); __type(value, int); }} m SEC(\".maps\");\n{USES_M}"
    );
    for program in programs(&text, &[]) {
        let names: Vec<&str> = program.objects.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["m"]);
    }
}

#[test]
fn a_capacity_left_open_is_asked_for_and_taken() {
    let text = format!(
        "struct {{ __uint(type, 2); __uint(max_entries, 0); __type(key, int); __type(value, int); }} m SEC(\".maps\");\n{USES_M}"
    );
    say(
        &refused(XDP, &text, "open-capacity"),
        &["m", "--capacity m=NUMBER", "program.c"],
    );
    let text = format!("{XDP}{text}");
    for clang in CLANGS {
        let Some(bytes) = compile_text(clang, &text, &["-Wno-all"]) else {
            continue;
        };
        let pair = |name: &str, n| (name.to_owned(), n);
        for (given, expected) in [
            (vec![pair("m", 9)], 9),
            (vec![pair("*", 7)], 7),
            (vec![pair("m", 9), pair("*", 7)], 9),
        ] {
            let program = load_with(&bytes, "program", &given).unwrap();
            assert_eq!(object(&program, "m").capacity, expected);
        }
        let absurd = load_with(&bytes, "program", &[pair("m", u64::MAX)]).unwrap_err();
        assert_eq!(absurd.rule, "absurd-size");
    }
}

#[test]
fn programs_are_found_whatever_their_section_is_called() {
    for (section, flags) in [
        ("prog", &[][..]),
        ("2/7", &[]),
        ("xdp1", &[]),
        ("xdp_fw", &["-g0"]),
        ("prog", &["-g0"]),
        ("2/7", &["-g0"]),
    ] {
        let text = format!("SEC(\"{section}\") int f(struct xdp_md *c) {{ return 2; }}\n");
        for program in programs(&text, flags) {
            assert_eq!(program.entries.len(), 1, "{section} {flags:?}");
        }
    }
    // A parameter that is not looked at may be left out.
    for program in programs("SEC(\"xdp\") int f() { return 2; }\n", &[]) {
        assert_eq!(program.entries.len(), 1);
    }
}

#[test]
fn programs_of_other_types_are_not_for_packets() {
    for (text, flags) in [
        (
            "SEC(\"prog\") int f(struct __sk_buff *c) { return 2; }\n",
            &[][..],
        ),
        (
            "SEC(\"classifier\") int f(void *c) { return 2; }\n",
            &["-g0"],
        ),
        ("SEC(\"kprobe/x\") int f(void *c) { return 2; }\n", &["-g0"]),
    ] {
        let text = format!("{XDP}{text}");
        let flags = [&["-Wno-all"], flags].concat();
        for clang in CLANGS {
            if let Some(bytes) = compile_text(clang, &text, &flags) {
                assert_eq!(load(&bytes, "program").unwrap_err().rule, "no-entry");
            }
        }
    }
    // Where one program says that it is for packets, those that say nothing are not.
    let text = "SEC(\"xdp\") int f(struct xdp_md *c) { return 2; }\n\
                SEC(\"mine\") int g(void *c) { return 2; }\n";
    for program in programs(text, &["-g0"]) {
        assert_eq!(program.entries.len(), 1);
    }
}

#[test]
fn functions_without_a_type_are_functions() {
    let text =
        "asm(\".section xdp,\\\"ax\\\",@progbits\\n.globl f\\nf:\\nr0 = 2\\nexit\\n.text\\n\");\n";
    for program in programs(text, &[]) {
        assert_eq!(program.functions[0].name, "f");
        assert_eq!(program.functions[0].insns.len(), 2);
    }
}

/// A program array whose elements are these initialisers, and two programs.
fn array_of_programs(entries: u32, values: &str) -> String {
    format!(
        "int f(struct xdp_md *c); int g(struct xdp_md *c); int h(int x);\n\
         struct {{ __uint(type, 3); __uint(max_entries, {entries}); __uint(key_size, 4); \
         __array(values, int (void *)); }} next SEC(\".maps\") = {{ .values = {{ {values} }} }};\n\
         __noinline int h(int x) {{ return x; }}\n\
         SEC(\"xdp\") int f(struct xdp_md *c) {{ bpf_tail_call(c, &next, 1); return 1; }}\n\
         SEC(\"xdp\") int g(struct xdp_md *c) {{ return 2; }}\n"
    )
}

#[test]
fn program_arrays_hold_the_numbers_of_programs() {
    let text = array_of_programs(4, "[1] = (void *)&g, [3] = (void *)&f");
    for program in programs(&text, &[]) {
        let number = |name: &str| {
            let is =
                |e: &millrace_object::program::Entry| program.functions[e.function.0].name == name;
            program.entries.iter().position(is).unwrap() as u32 + 1
        };
        let expected: Vec<u8> = [0, number("g"), 0, number("f")]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        assert_eq!(object(&program, "next").initial, Some(expected));
    }
    let text = array_of_programs(4, "[1] = (void *)&h");
    say(&refused(XDP, &text, "tail-call-target"), &["next", "h"]);
    let text = array_of_programs(1, "[1] = (void *)&g");
    say(
        &refused(XDP, &text, "tail-call-target"),
        &["next", "g", "has 1"],
    );
}

/// An object as iproute2 loads it: `main` in a section of its own and programs by section name.
fn by_section(entries: u32, sections: &str) -> String {
    format!(
        "{XDP}struct {{ int type, key, value, entries, flags, id, pinning, inner_id, inner; }}
         next SEC(\"maps\") = {{ 3, 4, 4, {entries}, 0, 2, 0, 0, 0 }};
         static int (*jump)(void *, void *, int) = (void *)12;
         SEC(\"prog\") int first(struct xdp_md *c) {{ jump(c, &next, 3); return 1; }}
         {sections}"
    )
}

#[test]
fn sections_fill_program_arrays_as_iproute2_has_it() {
    let text = by_section(
        8,
        "SEC(\"2/3\") int three(struct xdp_md *c) { return 2; }
         SEC(\"2/0x7\") int seven(struct xdp_md *c) { return 3; }
         SEC(\"5/1\") int elsewhere(void *c) { return 4; }",
    );
    for flags in [&["-Wno-all"][..], &["-Wno-all", "-g0"]] {
        for clang in CLANGS {
            let Some(bytes) = compile_text(clang, &text, flags) else {
                continue;
            };
            let program = load(&bytes, "program").unwrap_or_else(|e| panic!("{clang}: {e}"));
            let number = |name: &str| {
                let mut entries = program.entries.iter();
                entries.position(|e| program.functions[e.function.0].name == name)
            };
            let (first, three, seven) = (number("first"), number("three"), number("seven"));
            let element = |at: usize| {
                let bytes = &object(&program, "next").initial.as_ref().unwrap()[4 * at..4 * at + 4];
                u32::from_le_bytes(bytes.try_into().unwrap()) as usize
            };
            assert_eq!(element(3), three.unwrap() + 1, "{clang} {flags:?}");
            assert_eq!(element(7), seven.unwrap() + 1, "{clang} {flags:?}");
            assert_eq!(element(1), 0);
            assert!(program.is_tail_call_target(three.unwrap()));
            assert!(!program.is_tail_call_target(first.unwrap()));
        }
    }
}

#[test]
fn a_section_that_names_no_element_is_refused() {
    for sections in [
        "SEC(\"2/8\") int f(struct xdp_md *c) { return 2; }",
        "SEC(\"2/4294967294\") int f(struct xdp_md *c) { return 2; }",
        "SEC(\"2/1\") int f(struct xdp_md *c) { return 2; } SEC(\"2/0x1\") int g(struct xdp_md *c) { return 3; }",
    ] {
        let text = by_section(8, sections);
        let errors = refused("", &text, "tail-call-target");
        say(&errors, &["element", "next"]);
    }
}

#[test]
fn a_program_whose_element_its_loader_chooses_is_in_none() {
    let text = by_section(
        8,
        "SEC(\"2/4294967295\") int f(struct xdp_md *c) { return 2; }",
    );
    for clang in CLANGS {
        let Some(bytes) = compile_text(clang, &text, &["-Wno-all"]) else {
            continue;
        };
        let program = load(&bytes, "program").unwrap_or_else(|e| panic!("{clang}: {e}"));
        assert_eq!(program.entries.len(), 2, "{clang}");
        let elements = object(&program, "next").initial.clone();
        assert!(elements.is_none_or(|e| e.iter().all(|b| *b == 0)));
    }
}

#[test]
fn who_may_touch_the_values_and_how_the_map_is_pinned() {
    let declared = |kind: &str, more: &str| {
        format!(
            "struct {{ __uint(type, BPF_MAP_TYPE_{kind}); __uint(max_entries, 8); __type(key, int);
               __type(value, long); {more} }} m SEC(\".maps\");\n{USES_M}"
        )
    };
    for kind in ["ARRAY", "PERCPU_ARRAY", "HASH", "PERCPU_HASH"] {
        for (flags, read_only) in [
            ("0x80", true),
            ("0x100", false),
            ("0x18", false),
            ("4", false),
        ] {
            let text = declared(kind, &format!("__uint(map_flags, {flags});"));
            for program in programs(&text, &[]) {
                let m = object(&program, "m");
                assert_eq!(
                    (m.read_only, m.settable),
                    (read_only, read_only),
                    "{kind} {flags}"
                );
            }
        }
    }
    for program in programs(&declared("ARRAY", "__uint(pinning, 16);"), &[]) {
        assert!(!object(&program, "m").read_only);
    }
}

#[test]
fn bytes_beside_a_parameter_are_constants() {
    let text = "const volatile int width = 5; const char text[] = \"a b\";
        SEC(\"xdp\") int f(struct xdp_md *c) { const char *t = text; asm volatile(\"\" : \"+r\"(t)); return t[1] + width; }";
    for program in programs(text, &[]) {
        let id = program.objects.iter().position(|o| o.read_only).unwrap();
        let id = millrace_object::program::ObjectId(id);
        let all = program.objects[id.0].initial.clone().unwrap();
        let from = all.windows(4).position(|w| w == b"a b\0").unwrap() as u32;
        let param = &program.params[0];
        assert!(program.objects[id.0].settable);
        assert_eq!(program.constant(id, from, 4), Some(&b"a b\0"[..]));
        assert_eq!(program.constant(id, param.offset + 3, 1), None);
        assert_eq!(program.constant(id, 0, all.len() as u32), None);
        assert_eq!(program.constant(id, u32::MAX, 2), None);
    }
}

/// A map `m` whose values are these.
fn clocked(kind: &str, value: &str) -> String {
    format!(
        "typedef struct bpf_timer timer; struct value {{ {value} }};
         struct {{ __uint(type, BPF_MAP_TYPE_{kind}); __uint(max_entries, 8); __type(key, int);
           __type(value, struct value); }} m SEC(\".maps\");\n{USES_M}"
    )
}

#[test]
fn a_values_timer_is_found() {
    for (value, at) in [
        ("struct bpf_timer t; int a;", Some(0)),
        ("int a; struct bpf_timer t;", Some(8)),
        (
            "long a; struct { long b; struct { int c; timer t; } d; } e;",
            Some(24),
        ),
        ("long a; const timer t[1];", Some(8)),
        ("long a; struct bpf_timer *t;", None),
        ("struct bpf_spin_lock l; int a;", None),
    ] {
        for kind in ["HASH", "LRU_HASH", "ARRAY"] {
            for program in programs(&clocked(kind, value), &[]) {
                assert_eq!(object(&program, "m").timer, at, "{value}");
            }
        }
    }
}

#[test]
fn timers_that_cannot_be_are_refused() {
    for (kind, value, word) in [
        ("HASH", "struct bpf_timer t[2];", "timers"),
        ("ARRAY", "struct bpf_timer t; long a; timer u;", "timers"),
        ("PERCPU_ARRAY", "struct bpf_timer t;", "percpu_array"),
        ("LRU_PERCPU_HASH", "struct bpf_timer t;", "percpu"),
    ] {
        let errors = refused(XDP, &clocked(kind, value), "map-declaration");
        say(&errors, &[word]);
    }
    let packed = clocked("HASH", "int a; struct bpf_timer t;")
        .replace("t; };", "t; } __attribute__((packed));");
    say(&refused(XDP, &packed, "absurd-size"), &["multiple of 8"]);
}

#[test]
fn maps_in_maps_have_no_timers() {
    let text = format!(
        "struct value {{ long a; struct bpf_timer t; }};
         struct inner {{ __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, int);
           __type(value, struct value); }} inner SEC(\".maps\");
         struct {{ __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 4); __type(key, int);
           __array(values, struct inner); }} m SEC(\".maps\") = {{ .values = {{ &inner }} }};\n{USES_M}"
    );
    let errors = refused(XDP, &text, "map-in-map");
    say(&errors, &["m", "timers", "a map of the file's own"]);
}

#[test]
fn tables_declared_for_more_than_is_possible_have_the_most_that_is() {
    let map = |ty: u32, key: &str, entries: &str| {
        format!(
            "struct {{ __uint(type, {ty}); __uint(max_entries, {entries}); __uint(map_flags, 1); \
             __type(key, {key}); __uint(value_size, 4096); }} m SEC(\".maps\");\n{USES_M}"
        )
    };
    for (ty, key) in [(1, "int"), (5, "int"), (11, "__u64")] {
        let text = map(ty, key, "0xffffffff").replace("int k = 0", "long k = 0");
        for program in programs(&text, &[]) {
            let m = object(&program, "m");
            assert!((m.kind.validate)(m).is_ok());
            let mut twice = m.clone();
            twice.capacity = 2 * m.capacity;
            assert!((m.kind.validate)(&twice).is_err(), "{ty}: {}", m.capacity);
        }
        for clang in CLANGS {
            let text = format!("{XDP}{text}");
            let Some(bytes) = compile_text(clang, &text, &["-Wno-all"]) else {
                continue;
            };
            let given = [("m".to_owned(), 1000)];
            let program = load_with(&bytes, "program", &given).unwrap();
            assert_eq!(object(&program, "m").capacity, 1000);
        }
    }
    // An array of fewer elements would be another one.
    let array = map(2, "int", "0xffffffff").replace("__uint(map_flags, 1);", "");
    let told = refused(XDP, &array, "absurd-size");
    say(&told, &["m", "4294967295"]);
}

#[test]
fn variables_of_the_kernels_configuration_are_settings() {
    let text = "extern int LINUX_KERNEL_VERSION __kconfig;\n\
        extern enum libbpf_tristate CONFIG_XDP_SOCKETS __kconfig;\n\
        extern char CONFIG_BPF_JIT __kconfig __weak;\n\
        extern _Bool CONFIG_OTHER __kconfig __weak;\n\
        extern char CONFIG_NAME[16] __kconfig __weak;\n\
        extern unsigned int CONFIG_HZ __kconfig;\n\
        SEC(\"xdp\") int f(struct xdp_md *c) { return LINUX_KERNEL_VERSION + CONFIG_XDP_SOCKETS + CONFIG_BPF_JIT \
        + CONFIG_OTHER + CONFIG_NAME[2] + CONFIG_HZ; }\n";
    for mut program in programs(text, &[]) {
        let value = |program: &Program, name: &str| {
            let param = program.params.iter().find(|p| p.name == name).unwrap();
            let bytes = program.objects[param.object.0].initial.as_ref().unwrap();
            let from = param.offset as usize;
            let bytes = &bytes[from..from + param.bytes as usize];
            bytes.iter().rfold(0, |v, b| v << 8 | u64::from(*b))
        };
        assert!(object(&program, ".kconfig").read_only);
        for (name, expected) in [
            ("LINUX_KERNEL_VERSION", 0x06_01_00),
            ("CONFIG_XDP_SOCKETS", 1),
            ("CONFIG_BPF_JIT", u64::from(b'y')),
            ("CONFIG_OTHER", 0),
            ("CONFIG_HZ", 250),
        ] {
            assert_eq!(value(&program, name), expected, "{name}");
        }
        // Text is no number to set.
        assert!(program.params.iter().all(|p| p.name != "CONFIG_NAME"));
        program.set_param("CONFIG_HZ", "1000").unwrap();
        assert_eq!(value(&program, "CONFIG_HZ"), 1000);
    }
}
