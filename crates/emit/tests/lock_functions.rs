//! Every bundled function with all that it writes under the lock, and what no lock can guard.

use crate::support;

use std::collections::BTreeSet;

use millrace_emit::lock;
use millrace_object::program::ObjectId;
use millrace_turns::of_today;
use support::traffic::{SECOND, talks};
use support::workers::{Build, Way, sharing, writers, written};
use support::{Bench, facts, nf};

#[test]
fn what_cannot_be_shared_is_refused() {
    let bench = Bench::new();
    let program = nf::compile(
        &bench,
        "mixed",
        r#"
#include <millrace/nf.h>
VECTOR(a, __u64, .capacity = 4);
VECTOR(b, __u64, .capacity = 4);
ON_PACKET(p) { return FORWARD(p->port); }
EVERY(SECONDS(1), p)
{
	__u64 *x = vector_at(&a, 0), *y = vector_at(&b, 0);

	if (x && y)
		*x += *y;
}
"#,
    );
    let checked = facts(&program);
    let emit = |shared: &[&str]| {
        millrace_emit::emit(&program, &checked, &sharing(&program, shared), "m.c")
    };
    let refused = emit(&["a"]).unwrap_err().to_string();
    assert!(
        refused.contains("works on a (shared under the lock) and on b"),
        "{refused}"
    );
    assert!(emit(&["a", "b"]).unwrap().contains(".once = 1"));
    // What the timer works on goes together, and its period is how far apart workers may be.
    let shared = |ids: &[usize]| ids.iter().map(|i| ObjectId(*i)).collect::<BTreeSet<_>>();
    let at = |name: &str| program.objects.iter().position(|o| o.name == name).unwrap();
    let (a, b) = (at("a"), at("b"));
    let all = lock::together(&program, &checked, &shared(&[a]));
    assert_eq!(all, shared(&[a, b]));
    assert_eq!(lock::apart(&program, &checked, &all), Some(SECOND));
    assert_eq!(lock::apart(&program, &checked, &shared(&[])), None);
    assert_eq!(lock::repeated(&program, &checked), all);
    assert_eq!(lock::obstacle(&program, &checked, ObjectId(a)), None);
    // Without a shared object it is the treatment alone.
    let alone = millrace_emit::alone::emit(&program, &checked, "m.c").unwrap();
    assert_eq!(emit(&[]).unwrap(), alone);
}

/// With all that a function writes under the lock its module compiles without a warning.
#[test]
fn every_function_can_share_all_it_has() {
    let bench = Bench::new();
    let folder = nf::repository().join("nfs");
    let mut names: Vec<String> = (std::fs::read_dir(folder).unwrap())
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in of_today("functions with all that they write shared", names, 3) {
        let program = nf::load(&bench, &name);
        let shared = written(&program);
        let text = bench.shared_text(&program, &sharing(&program, &shared));
        assert_eq!(text.contains("struct mr_shared {"), !shared.is_empty());
        let source = bench.path(&format!("{name}-shared.c"));
        std::fs::write(&source, text).unwrap();
        bench.clang(
            Build::Thread,
            &["-fsyntax-only"],
            &source,
            &bench.path("nothing"),
        );
    }
}

/// The others, each with everything that it writes under the lock.
#[test]
fn what_the_others_share_is_replayed() {
    let bench = Bench::new();
    let events = talks(15);
    let way = Way {
        workers: 3,
        plain: false,
        burst: 32,
        rounds: 1,
    };
    let names = [
        "cl",
        "conntrack",
        "ddos",
        "einat",
        "heavyhitter",
        "hhh",
        "policer",
        "psd",
        "tokenbucket",
    ];
    for name in of_today("functions under the lock", names, 3) {
        let program = nf::load(&bench, name);
        let text = bench.shared_text(&program, &sharing(&program, &written(&program)));
        let module = bench.build(name, &text, Build::Plain);
        let alone = bench.alone(&format!("{name}-alone"), &program, Build::Reference);
        let result = bench.replayed(&program, (&module, &alone), Build::Plain, way, &events);
        let result = result.unwrap_or_else(|e| panic!("{name}: {e}"));
        let run = (result, events.clone());
        eprintln!(
            "{name}: {} of {} packets wrote",
            writers(&run),
            events.len()
        );
    }
}
