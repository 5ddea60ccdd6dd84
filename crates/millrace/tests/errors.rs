//! Errors say what was wrong, how to fix it, and which kind of end it is.

use millrace::{Asked, Kind, Make, Ports};

use super::{check, of_repository, run};

/// Reads a byte that nothing proves to be in the packet.
const UNSAFE: &str = "\
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC(\"xdp\")
int unsafe_read(struct xdp_md *ctx)
{
    unsigned char *data = (void *)(long)ctx->data;

    return data[14] ? XDP_DROP : XDP_PASS;
}
";

#[test]
fn a_refusal_is_an_answer_with_the_authors_line() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("unsafe.c");
    std::fs::write(&source, UNSAFE).unwrap();
    let word = source.to_str().unwrap();
    let found = millrace::find(word).unwrap();
    let written = found.read(&Make::default()).unwrap();
    let error = written.check(Make::default().begin()).err().unwrap();
    assert_eq!(
        (error.kind, error.what.as_str()),
        (Kind::No, "unsafe is refused")
    );
    let refused = error.refused.unwrap();
    let refusal = refused.refusals.first().unwrap();
    assert_eq!(refusal.line.as_ref().unwrap().line, 9);
    assert_eq!(refused.folder, folder.path());

    let loaded = found.load(&Make::default(), &mut |_| {}).err().unwrap();
    assert_eq!(loaded.kind, Kind::No);
    assert!(loaded.refused.is_some());
    let verdict = check::verdict(word).unwrap();
    assert!(verdict.starts_with("unsafe: refused\nline 9: "));
}

#[test]
fn wrong_use_says_what_to_do() {
    let wrong = |error: millrace::Error, what: &str| {
        assert_eq!(error.kind, Kind::Wrong, "{error}");
        assert!(error.what.contains(what), "{error}");
        assert!(error.help.is_some(), "{error}");
    };
    wrong(millrace::find("no-such-function").err().unwrap(), "no-such");
    let found = millrace::find(&of_repository("nfs/firewall")).unwrap();
    let make = Make {
        settings: vec![("no_such".into(), "1".into())],
        ..Make::default()
    };
    wrong(found.read(&make).err().unwrap(), "no_such");
    let function = found.load(&Make::default(), &mut |_| {}).unwrap();
    let ports = Ports {
        inputs: vec!["/nonexistent.pcap".into()],
        ..Ports::default()
    };
    let error = millrace::run(&function, &ports, &run::STOP).err().unwrap();
    wrong(error, "/nonexistent.pcap");
    // More workers than the indirection table has entries.
    let written = found.read(&Make::default()).unwrap();
    let proved = written.check(Make::default().begin()).unwrap();
    let asked = Asked {
        cores: 100_000,
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, Make::default().begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    wrong(proved.arrange(&mut model, &asked).err().unwrap(), "cores");
}
