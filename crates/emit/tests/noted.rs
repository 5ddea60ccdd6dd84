//! What has no copy on another machine is refused, with the line of the program that works on it.

use crate::support::{Bench, facts, nf};

use millrace_emit::Sharing;
use millrace_place::{Held, MOST_NOTED, Placement};

/// An object, a line that declares it, and one that works on it.
fn source(declares: &str, works: &str) -> String {
    format!(
        "#include <millrace/nf.h>\nstruct page {{ __u8 text[BYTES]; }};\n{declares}\n\
         ON_PACKET(p)\n{{\n\t__u64 key = p->port;\n\n\t{works}\n\treturn FORWARD(0);\n}}\n"
    )
}

/// Why there is no module, where there is none.
fn refused(declares: &str, works: &str, bytes: u64) -> Option<String> {
    let bench = Bench::new();
    let text = source(declares, works).replace("BYTES", &bytes.to_string());
    let program = nf::compile(&bench, "noted", &text);
    let held = |name: &str| match name == "pages" {
        true => Held::Divided,
        false => Held::Copied,
    };
    let held = program.objects.iter().map(|o| held(&o.name)).collect();
    let with = |noted| Sharing {
        placement: Placement {
            noted,
            ..Placement::even(&program.objects, 1, held)
        },
        test: None,
        profile: false,
    };
    let (facts, with) = (facts(&program), with(true));
    let without = Sharing {
        placement: Placement {
            noted: false,
            ..with.placement.clone()
        },
        test: None,
        profile: false,
    };
    // What is refused is the copy, not the program.
    millrace_emit::emit(&program, &facts, &without, "m.c").unwrap();
    let text = millrace_emit::emit(&program, &facts, &with, "m.c");
    text.err().map(|e| e.to_string())
}

#[test]
fn what_has_no_copy_is_refused_with_its_line() {
    let map = "MAP(pages, __u64, struct page, .capacity = 4);";
    let get = "map_get(&pages, &key);";
    assert_eq!(refused(map, get, MOST_NOTED - 8), None);
    let error = refused(map, get, MOST_NOTED - 7).unwrap();
    assert!(
        error.contains("noted.c:8: a copy of pages on another machine")
            && error.contains("a key and a value have 188417 bytes, of which there may be 188416"),
        "{error}"
    );
    let error = refused(
        "SKETCH(pages, __u64, .capacity = 64, .rows = 2);",
        "sketch_add(&pages, &key, 1);",
        1,
    );
    let error = error.unwrap();
    assert!(
        error.contains("noted.c:8: a copy of pages") && error.contains("not known of this kind"),
        "{error}"
    );
}
