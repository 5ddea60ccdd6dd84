//! Every contract of a helper is the prototype of its C function (fastpath/README.md).

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use millrace_object::helper::{self, Arg, HELPERS, Helper, Return};

/// What the emitter passes for an argument of this kind.
fn parameters(helper: &Helper, kind: Option<&str>) -> String {
    let mut list: Vec<String> = Vec::new();
    // Draws depend on the configuration's seed.
    if let Some(kind) = helper::implied(helper) {
        list.push(format!("struct {} *", kind.c));
        list.push("const struct shape *".to_owned());
    }
    for arg in helper.args {
        match arg {
            Arg::Context => {}
            // The timer has said which.
            Arg::Object if helper.args.contains(&Arg::Timer) => {}
            Arg::Object => {
                list.push(format!("struct {} *", kind.unwrap()));
                list.push("const struct shape *".to_owned());
            }
            Arg::Key => list.extend(["const u64 *".to_owned(), "u64".to_owned()]),
            Arg::Value => list.push("const u8 *".to_owned()),
            Arg::Timer => {
                list.push(format!("struct {} *", kind.unwrap()));
                list.push("const struct shape *".to_owned());
                list.push("u8 *".to_owned());
            }
            Arg::Scalar | Arg::Bytes { .. } | Arg::Callback => list.push("u64".to_owned()),
            Arg::Read { .. }
            | Arg::In(_)
            | Arg::Text
            | Arg::Write { .. }
            | Arg::Update
            | Arg::Record
            | Arg::Out(_)
            | Arg::InOut(_)
            | Arg::KeyOut
            | Arg::ValueOut => {
                list.push("u8 *".to_owned());
            }
            Arg::Function | Arg::Any | Arg::Iterator => panic!("{} has no C function", helper.name),
        }
    }
    if helper.effects.random {
        list.push("u64".to_owned());
    }
    list.push("struct mr_packet *".to_owned());
    list.join(", ")
}

fn returns(helper: &Helper) -> &'static str {
    match helper.returns {
        Return::Scalar { .. } => "u64",
        Return::ValueOrNull | Return::RecordOrNull => "u8 *",
    }
}

/// Header, function and the kind whose structure it takes.
fn functions(helper: &Helper) -> Vec<(String, String, Option<&'static str>)> {
    if let Some(kind) = helper::implied(helper) {
        let function = format!("{}_{}", kind.c, helper.name);
        return vec![(format!("state/{}.h", kind.c), function, Some(kind.c))];
    }
    if !helper.takes_object() {
        let name = helper.name;
        return vec![(format!("helpers/{name}.h"), format!("helper_{name}"), None)];
    }
    let mut prefixes: Vec<&str> = helper.kinds().map(|kind| kind.c).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let function = |c: &'static str| {
        (
            format!("state/{c}.h"),
            format!("{c}_{}", helper.name),
            Some(c),
        )
    };
    prefixes.into_iter().map(function).collect()
}

#[test]
fn contracts_are_prototypes() {
    let fastpath = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fastpath");
    let compilers = ["clang-19", "clang", "cc"];
    let is_here = |cc: &&str| Command::new(cc).arg("--version").output().is_ok();
    let Some(compiler) = compilers.into_iter().find(is_here) else {
        eprintln!("skipped: no C compiler");
        return;
    };
    let mut includes = std::collections::BTreeSet::new();
    let mut body = String::new();
    for helper in HELPERS.iter().filter(|h| !h.is_expanded()) {
        for (header, function, kind) in functions(helper) {
            let parameters = parameters(helper, kind);
            writeln!(
                body,
                "{} (*const check_{function})({parameters}) = {function};",
                returns(helper)
            )
            .unwrap();
            includes.insert(header);
        }
    }
    let mut source = String::new();
    for header in includes {
        writeln!(source, "#include \"{header}\"").unwrap();
    }
    source.push_str(&body);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("prototypes.c");
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler)
        .args(["-fsyntax-only", "-w", "-Werror=incompatible-pointer-types"])
        .args(["-Werror=incompatible-function-pointer-types", "-I"])
        .arg(&fastpath)
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
