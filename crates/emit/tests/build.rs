//! From source to module through the cache: what is made again and what is not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_emit::cache::Cache;
use millrace_emit::toolchain::Toolchain;
use millrace_emit::{Built, Error, Options, Stage, build};
use millrace_place::Placement;

/// A handler with an include of its own, a parameter and a constant.
const SOURCE: &str = r#"#include <millrace/nf.h>
#include "limit.h"
PORTS(A, B);
PARAM(__u32, threshold, 7);
ON_PACKET(p)
{
	if (packet_length(p) > threshold + LIMIT)
		return DROP_BECAUSE(too_long);
	return FORWARD(peer(p));
}
"#;

struct Case {
    folder: tempfile::TempDir,
    cache: Cache,
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("cache")).unwrap();
        std::fs::write(folder.path().join("limit.h"), "#define LIMIT 100\n").unwrap();
        std::fs::write(folder.path().join("nf.c"), SOURCE).unwrap();
        Case { folder, cache }
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("nf.c")
    }

    fn build(&self, settings: &[(&str, &str)]) -> (Result<Built, Error>, Vec<Stage>) {
        let settings: Vec<(String, String)> = settings
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect();
        let mut stages = Vec::new();
        let built = build(
            &self.cache,
            &self.source(),
            &settings,
            &Options::default(),
            &mut |s| stages.push(s),
        );
        (built, stages)
    }
}

const ALL: &[Stage] = &[
    Stage::Compile,
    Stage::Load,
    Stage::Check,
    Stage::Emit,
    Stage::Module,
];

#[test]
fn what_is_there_is_not_made_again() {
    let case = Case::new();
    let (cold, stages) = case.build(&[]);
    let cold = cold.unwrap();
    assert_eq!(stages, ALL);
    assert!(!cold.from_cache && cold.checked.is_some());
    let (warm, stages) = case.build(&[]);
    let warm = warm.unwrap();
    assert_eq!(stages, [Stage::Load], "neither compiler nor checker");
    assert!(warm.from_cache && warm.checked.is_none());
    assert_eq!(warm.module, cold.module);
    assert_eq!(warm.program.objects.len(), cold.program.objects.len());
    eprintln!(
        "cold {:?}, warm {:?}",
        cold.timings.total, warm.timings.total
    );
}

#[test]
fn a_changed_include_is_noticed() {
    let case = Case::new();
    let first = case.build(&[]).0.unwrap();
    std::fs::write(case.folder.path().join("limit.h"), "#define LIMIT 200\n").unwrap();
    let (second, stages) = case.build(&[]);
    assert_eq!(stages, ALL);
    assert_ne!(second.unwrap().module, first.module);
    // Back again: clang has to look, but the object, and so the module, are known.
    std::fs::write(case.folder.path().join("limit.h"), "#define LIMIT 100\n").unwrap();
    let (third, stages) = case.build(&[]);
    assert_eq!(stages, [Stage::Compile, Stage::Load]);
    assert_eq!(third.unwrap().module, first.module);
}

#[test]
fn parameters_are_not_compiled_in() {
    let case = Case::new();
    let first = case.build(&[]).0.unwrap();
    let (set, stages) = case.build(&[("threshold", "9")]);
    let set = set.unwrap();
    assert_eq!(stages, [Stage::Load]);
    assert_eq!(set.module, first.module);
    let params = |b: &Built| {
        b.program
            .objects
            .iter()
            .find(|o| o.settable)
            .unwrap()
            .initial
            .clone()
            .unwrap()
    };
    assert_eq!(params(&first)[..4], 7u32.to_le_bytes());
    assert_eq!(params(&set)[..4], 9u32.to_le_bytes());
    let error = case.build(&[("treshold", "9")]).0.unwrap_err().to_string();
    assert!(error.contains("--set treshold=9"), "{error}");
}

#[test]
fn diagnostics_come_through_with_file_and_line() {
    let case = Case::new();
    std::fs::write(
        case.source(),
        SOURCE.replace("return FORWARD", "retrun FORWARD"),
    )
    .unwrap();
    let Error::Compile { diagnostics, .. } = case.build(&[]).0.unwrap_err() else {
        panic!("another error")
    };
    assert!(diagnostics.contains("nf.c:9:"), "{diagnostics}");
    assert!(diagnostics.contains("retrun"), "{diagnostics}");
}

#[test]
fn warnings_are_seen_each_time() {
    let case = Case::new();
    std::fs::write(
        case.source(),
        SOURCE.replace("ON_PACKET(p)\n{", "ON_PACKET(p)\n{\n\tint unused;\n"),
    )
    .unwrap();
    for _ in 0..2 {
        let built = case.build(&[]).0.unwrap();
        assert!(
            built.warnings.contains("unused variable"),
            "{}",
            built.warnings
        );
    }
}

#[test]
fn refusals_and_bad_objects_are_errors() {
    let case = Case::new();
    let unsafe_load = "if (packet_length(p) > threshold + LIMIT)";
    std::fs::write(
        case.source(),
        SOURCE.replace(unsafe_load, "if (*(__u8 *)(long)p->data)"),
    )
    .unwrap();
    let error = case.build(&[]).0.unwrap_err();
    let Error::Refused { refusals, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(refusals.len(), 1);

    let build_file = |path: &Path| build(&case.cache, path, &[], &Options::default(), &mut |_| {});
    let junk = case.folder.path().join("junk.o");
    std::fs::write(&junk, b"\x7fELF but no more").unwrap();
    assert!(matches!(build_file(&junk), Err(Error::Object { .. })));
    assert!(matches!(
        build_file(&case.folder.path().join("absent.c")),
        Err(Error::Io { .. })
    ));
    assert!(matches!(
        build_file(&case.folder.path().join("absent.o")),
        Err(Error::Io { .. })
    ));
}

#[test]
fn two_at_once_share_a_cache() {
    let case = Case::new();
    let modules: Vec<PathBuf> = std::thread::scope(|scope| {
        let builders: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| case.build(&[]).0.unwrap().module))
            .collect();
        builders.into_iter().map(|b| b.join().unwrap()).collect()
    });
    assert!(modules.iter().all(|m| m == &modules[0] && m.is_file()));
    let left: Vec<_> = std::fs::read_dir(modules[0].parent().unwrap())
        .unwrap()
        .filter(|e| {
            e.as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with('.')
        })
        .collect();
    assert!(left.is_empty(), "nothing half made stays: {left:?}");
}

#[test]
fn what_workers_share_is_another_module() {
    let case = Case::new();
    let input = case.source();
    let source = "#include <millrace/nf.h>\nVECTOR(counts, __u64, .capacity = 4);\n\
        ON_PACKET(p)\n{\n\t__u64 *count = vector_at(&counts, p->port);\n\n\
        \tif (count)\n\t\t++*count;\n\treturn FORWARD(0);\n}\n";
    std::fs::write(&input, source).unwrap();
    let build = |shared: &[&str]| {
        let locked = Placement::locked(shared.iter().copied());
        let options = Options {
            placement: Some(Arc::new(locked)),
            ..Options::default()
        };
        millrace_emit::build(&case.cache, &input, &[], &options, &mut |_| ())
    };
    let alone = build(&[]).unwrap();
    let shared = build(&["counts"]).unwrap();
    assert_ne!(alone.module, shared.module);
    let text = std::fs::read_to_string(shared.source).unwrap();
    assert!(text.contains("struct mr_shared {"));
    let error = build(&["nobody"]).unwrap_err().to_string();
    assert!(
        error.contains("`nobody`") && error.contains("counts"),
        "{error}"
    );
}

/// <linux/icmp.h> has headers of the C library in it; XDP that includes it compiles, with the sizes of BPF. Handlers are told what
/// they have instead of the library.
#[test]
fn kernel_headers_that_have_the_library_in_them_compile() {
    let case = Case::new();
    let xdp = "#include <linux/bpf.h>\n#include <linux/icmp.h>\n#include <bpf/bpf_helpers.h>\n\
        SEC(\"xdp\") int echo(struct xdp_md *c)\n{\n\
        \t_Static_assert(sizeof(struct icmphdr) == 8 && sizeof(size_t) == 8, \"sizes\");\n\
        \treturn c->data + sizeof(struct icmphdr) > c->data_end ? XDP_DROP : XDP_PASS;\n}\n";
    std::fs::write(case.source(), xdp).unwrap();
    let (built, _) = case.build(&[]);
    assert!(built.is_ok(), "{:?}", built.err());
    std::fs::write(case.source(), SOURCE.replace("\"limit.h\"", "<string.h>")).unwrap();
    let (built, _) = case.build(&[]);
    let said = built.err().unwrap().to_string();
    assert!(said.contains("`string.h` belongs to the host"), "{said}");
}

/// clang compiles, and the linker is started without its driver: what comes out is what the driver makes.
#[test]
fn a_module_is_linked_as_the_driver_links_it() {
    let bench = crate::support::Bench::new();
    let program = crate::support::nf::load(&bench, "firewall");
    let linked = std::fs::read(bench.module(&program, false)).unwrap();
    let toolchain = Toolchain {
        link: None,
        ..bench.toolchain.clone()
    };
    assert!(bench.toolchain.link.is_some(), "clang says how it links");
    let mut by_driver = bench;
    by_driver.toolchain = toolchain;
    let module = std::fs::read(by_driver.module(&program, false)).unwrap();
    assert!(linked == module, "the modules differ");
    let left = by_driver.path("module.o");
    assert!(!left.exists(), "the object stays");
}
