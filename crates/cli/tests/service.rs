//! A chain file that says everything that its run needs, and what is said where it does not.

use std::path::Path;

use millrace_tables::rows;

use crate::common::{json, millrace, output, read, refused, root, success};

/// A chain file with these lines at its top, then one function.
fn file(folder: &Path, top: &str) -> String {
    let path = folder.join("edge.toml");
    let nf = root().canonicalize().unwrap().join("nfs/nop");
    let text = format!(
        "{top}\n[[element]]\nname = \"only\"\nnf = \"{}\"\n",
        nf.display()
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_file_alone_says_what_a_run_needs() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(
        root().join("captures/talk.pcap"),
        dir.path().join("in.pcap"),
    )
    .unwrap();
    let top = "in = [\"in.pcap\"]\nout = \"out.pcap\"\nseed = 7\nburst = 16\n\
               packets = 1_000\ncontrol = \"none\"\nno-prefetch = true\nbusy = false\nmap-memory = \"1G\"";
    let path = file(dir.path(), top);
    // Where the command is typed makes no difference to the paths in the file.
    let account = success(millrace().args(["run", &path]));
    assert_eq!(
        (&account["seed"], &account["burst"], &account["read"]),
        (&7.into(), &16.into(), &1000.into()),
        "{account}"
    );
    assert_eq!(read(&dir.path().join("out.pcap")).len(), 1000);

    // The command line counts where both say something.
    let out = dir.path().join("other.pcap").display().to_string();
    let run = ["run", &path, "--packets", "10", "--out", &out, "--seed=9"];
    let account = success(millrace().args(run));
    assert_eq!(account["read"], 10, "{account}");
    assert_eq!(account["seed"], 9);
    assert_eq!(read(&dir.path().join("other.pcap")).len(), 10);

    // Captures on the command line take the place of the ports of a service.
    let path = file(
        dir.path(),
        "ports = [\"afpacket:nothing0\", \"afpacket:nothing1\"]",
    );
    let capture = dir.path().join("in.pcap").display().to_string();
    let account = success(millrace().args(["run", &path, "--in", &capture]));
    assert_eq!(account["read"], 1619, "{account}");
}

/// What is at the top of a file, the line that is told, and parts of the message and of the help.
const WRONG: &str = r#"
prots = ["a"]                                       | 1 | no key `prots`                    | write `ports`
pin_all = true                                      | 1 | no key `pin_all`                  | write `pin-all`
colour = 1                                          | 1 | no key `colour`                   | the keys are\s
"-- " = 1                                           | 1 | no key `-- `                      | the keys are\s
set = ["a=1"]                                       | 1 | no key `set`                      | below its [[element]]
json = true                                         | 1 | no key `json`                     | --json on the command line
\ncores = "many"                                    | 2 | `cores` = `many`: invalid digit   | How many cores
pin = ""                                            | 1 | `pin` is empty                    | pin:\s
in = [""]                                           | 1 | `in` is empty                     | in:\s
cores = -1                                          | 1 | `cores` = `-1`                    | How many cores
cores = [1, 2]                                      | 1 | takes one value, not a list       | How many cores
cores = 1.5                                         | 1 | `cores` = `1.5`                   | How many cores
cores = 0\nin = "x.pcap"                            | 1 | --cores 0: no number of cores     | give 1 to
cores = {n = 1}                                     | 1 | `cores` is a text or a number     | docs/chains.md
burst = 100000                                      | 1 | a burst has 1 to                  | burst:\s
strategy = "fast"                                   | 1 | `strategy` is no `fast`           | best, spread
busy = "yes"                                        | 1 | `busy` is true or false           | busy:\s
seconds = "soon"                                    | 1 | a time in seconds                 | seconds:\s
seconds = -1                                        | 1 | a time in seconds                 | seconds:\s
metrics = "here"                                    | 1 | `metrics` = `here`                | metrics:\s
metrics = true                                      | 1 | `metrics` = `true`                | metrics:\s
cpus = [0,\n1,\n"x"]                                | 3 | `cpus` = `x`: invalid digit       | cpus:\s
map-memory = "much"                                 | 1 | not a size                        | map-memory:\s
split = "lan"                                       | 1 | `split` = `lan`                   | split:\s
in = "x.pcap"\npin-all = true                       | 2 | this needs `pin`, too             | say `pin`
in = "x.pcap"\ntrace = "t.pcap"\nsteer = "nic=generic" | 2 | exclude each other                | leave one of them out
                                                    | 0 | no port is named                  | ports = [
cores = 2\nin = ["x.pcap",\n "pigeon:y"]            | 3 | no port of kind `pigeon:`         | afpacket:IF
in = "gone.pcap"                                    | 1 | gone.pcap                         | pcap
in = "x.pcap"\nloops = 3                            | 2 | --loops: no input can begin again | mem:FILE
in = "x.pcap"\nfates = "f"                          | 2 | --fates is for                    | leave it out
ports = ["afpacket:nothing0",\n"afpacket:nothing1"] | 1 | nothing0                          |
in = "in.pcap"\nout = "no/such/out.pcap"            | 2 | no/such/out.pcap                  | --out
"#;

#[test]
fn each_wrong_key_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(
        root().join("captures/talk.pcap"),
        dir.path().join("in.pcap"),
    )
    .unwrap();
    std::fs::copy(root().join("captures/talk.pcap"), dir.path().join("x.pcap")).unwrap();
    let mut missed = Vec::new();
    for [top, line, what, help] in rows(WRONG) {
        let path = file(dir.path(), &top);
        let said = refused(millrace().args(["run", &path]), 2);
        let place = match line.as_str() {
            "0" => "error: ".to_owned(),
            line => format!("error: {path}:{line}: "),
        };
        let error = said.lines().find(|l| l.starts_with("error: ")).unwrap();
        let helped = said.lines().find(|l| l.starts_with("help: ")).unwrap();
        // The line itself is shown.
        let shown = line == "0" || said.contains(&format!("--> {path}:{line}:"));
        if !(error.starts_with(&place) && error.contains(&what) && helped.contains(&help) && shown)
        {
            missed.push(format!("{top}\n{said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

/// Every option of `run` that is a key of a file, as docs/command.md lists them: what is no value of any of them is told.
#[test]
fn every_key_of_the_run_is_told_where_its_value_is_none() {
    let page = std::fs::read_to_string(root().join("docs/command.md")).unwrap();
    let run = page.split_once("\n## millrace run\n").unwrap().1;
    let run = run.split_once("\n## ").unwrap().0;
    let options = run.lines().filter_map(|l| l.strip_prefix("| `--"));
    let options = options.filter_map(|l| l.split(['`', ' ', '[']).next());
    // Of an element, or of the command line alone.
    let others = ["set", "capacity", "map", "program", "json"];
    let keys: Vec<_> = options.filter(|o| !others.contains(o)).collect();
    assert!(keys.len() > 30, "{keys:?}");
    let dir = tempfile::tempdir().unwrap();
    for key in keys {
        for value in ["{ a = 1 }", "[[1]]"] {
            let path = file(dir.path(), &format!("# a comment\n{key} = {value}"));
            for verb in ["check", "run"] {
                let said = refused(millrace().args([verb, &path]), 2);
                let place = format!("error: {path}:2: ");
                let error = said.lines().find(|l| l.starts_with("error: ")).unwrap();
                assert!(
                    error.starts_with(&place) && error.contains(&format!("`{key}`")),
                    "{verb}: {key} = {value}: {said}"
                );
                assert!(said.contains("help: "), "{said}");
            }
        }
    }
}

#[test]
fn settings_of_an_element_are_told_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let program = root().canonicalize().unwrap();
    let program = program.join("tests/programs/blocklist.c");
    std::fs::write(dir.path().join("bad.csv"), "10.0.0.0/8,1\nnonsense\n").unwrap();
    let path = dir.path().join("edge.toml");
    let cases = [
        ("set = { nothing = 1 }", 4, "only: `set.nothing`: "),
        (
            "capacity = { blocked = 8,\n nothing = 9 }",
            5,
            "only: `capacity.nothing`",
        ),
        ("capacity = { blocked = \"x\" }", 4, "only: "),
        ("map = { nothing = \"bad.csv\" }", 4, "no such object"),
        ("map = { blocked = \"gone.csv\" }", 4, "gone.csv"),
        ("map = { blocked = \"bad.csv\" }", 4, "bad.csv"),
        ("program = \"nothing\"", 4, "no program `nothing`"),
    ];
    for (key, line, what) in cases {
        let nf = program.display();
        let text = format!("[[element]]\nnf = \"{nf}\"\nname = \"only\"\n{key}\n");
        std::fs::write(&path, text).unwrap();
        let said = refused(
            millrace().args(["run", path.to_str().unwrap(), "--in", "captures/talk.pcap"]),
            2,
        );
        assert!(
            said.contains(&format!("edge.toml:{line}: ")) && said.contains(what),
            "{key}: {said}"
        );
    }
    std::fs::write(&path, "[[element]]\nnf = \"gone.c\"\n").unwrap();
    let (_, said) = output(millrace().args(["run", path.to_str().unwrap(), "--in", "x"]));
    assert!(
        said.contains("edge.toml:2: there is no function `gone.c`"),
        "{said}"
    );
}

const UNSAFE: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
                      SEC(\"xdp\") int f(struct xdp_md *ctx)\n{\n\treturn *(char *)(long)ctx->data;\n}\n";

#[test]
fn check_says_whether_a_file_can_be_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edge.toml");
    let nfs = root().canonicalize().unwrap();
    let blocklist = nfs.join("tests/programs/blocklist.c");
    let rules = r#"[{"key": "10.0.0.0/8", "value": {"number": 7, "port": 80}}]"#;
    std::fs::write(dir.path().join("b.json"), rules).unwrap();
    std::fs::write(dir.path().join("unsafe.c"), UNSAFE).unwrap();
    let text = format!(
        "name = \"edge\"\nports = [\"afpacket:nothing0?blocks=8\", \"afpacket:nothing1\"]\ncores = 2\n\
         [[element]]\nnf = \"{}\"\nmap = {{ blocked = \"b.json\" }}\n\
         [[element]]\nguest = [\"cat\", \"@\"]\nmemory = 64\n",
        blocklist.display()
    );
    let check = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut command = millrace();
        command.args(["check", path.to_str().unwrap()]);
        command
    };
    let (said, errors) = output(&mut check(&text));
    let out = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(0), "{out}{errors}");
    for part in [
        "2 elements: it can be run",
        "blocklist",
        "safe: ",
        "guest:cat @",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    let document = success(&mut check(&text));
    assert_eq!(document["admitted"], true, "{document}");
    assert_eq!(document["elements"][0]["function"]["name"], "blocklist");
    assert_eq!(document["elements"][1]["guest"], "guest:cat @");

    // Every mistake, not the first alone.
    let wrong = text
        .replace("cores = 2", "cores = 2\nprots = 1")
        .replace("nothing1", "nothing1?bloks=8")
        .replace("b.json", "c.json")
        .replace("memory = 64", "memory = 1");
    let said = refused(&mut check(&wrong), 2);
    for (line, what) in [(4, "no key `prots`"), (7, "c.json"), (10, "memory=1")] {
        let place = format!("edge.toml:{line}: ");
        let found = said.lines().any(|l| l.contains(&place) && l.contains(what));
        assert!(found, "{place}{what} in\n{said}");
    }
    let wrong = text.replace("nothing1", "nothing1?bloks=8");
    let said = refused(&mut check(&wrong), 2);
    assert!(
        said.contains("edge.toml:2: ") && said.contains("`bloks`"),
        "{said}"
    );
    let (document, status) = json(&mut check(&wrong));
    assert_eq!(
        (status, &document["admitted"]),
        (2, &false.into()),
        "{document}"
    );
    let error = document["errors"][0]["error"].as_str().unwrap();
    assert!(error.contains("edge.toml:2: "), "{document}");

    // A function that is refused is told in its author's line.
    let wrong = format!("{text}[[element]]\nnf = \"unsafe.c\"\n");
    let (said, errors) = output(&mut check(&wrong));
    let out = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(1), "{out}{errors}");
    assert!(
        out.contains("refused") && errors.contains("unsafe.c:5"),
        "{out}{errors}"
    );
    for (more, what) in [
        ("--program=x", "--program is for"),
        ("--capacity=a=1", "--capacity is for"),
    ] {
        let said = refused(check(&text).arg(more), 2);
        assert!(said.contains(what), "{said}");
    }
    assert!(refused(&mut check("nonsense"), 2).contains("edge.toml:1: "));
}

/// A function of two ports behind one of them is told at start, and runs.
#[test]
fn ports_that_nothing_serves_are_told() {
    let run = |words: &[&str]| {
        let mut command = millrace();
        command.arg("run").args(words);
        output(&mut command).1
    };
    const CAPTURE: &str = "captures/talk.pcap";
    let said = run(&["firewall", "--in", CAPTURE]);
    let enters = "note: all packets enter at LAN, and none at WAN: give --split lan=PREFIX";
    assert!(said.contains(enters), "{said}");
    let port = format!("vnic:{CAPTURE}?measure=off");
    let said = run(&["nat", "--ports", &port, "--packets", "100"]);
    assert!(said.contains("note: nothing serves WAN: "), "{said}");
    let split = ["firewall", "--in", CAPTURE, "--split", "lan=10.0.0.0/24"];
    for words in [&["nop", "--in", CAPTURE][..], &split] {
        let said = run(words);
        assert!(!said.contains("note: "), "{said}");
    }
    let (_, said) = output(millrace().args(["run", "nop"]));
    assert!(
        said.contains("error: no port is named") && said.contains("help: give --ports"),
        "{said}"
    );
}

/// What stands below the first line of a file, the line that is told, and parts of the message and of the help.
const ELEMENTS: &str = r#"
                                                    | 0 | no elements                          | [[element]]
element = 1                                         | 2 | `element` is a list                  | docs/chains.md
[[element]]\nname = "a"                             | 3 | neither `nf` nor `click` nor `guest` | say what
[[element]]\nnf = "NOP"\nguest = "cat @"            | 3 | both `nf` and `guest`                | one of them
[[element]]\nnf = 3                                 | 3 | `nf` is a text                       | docs/chains.md
[[element]]\nnf = "gone"                            | 3 | no function `gone`                   | give a source
[[element]]\nnf = "NOP"\nname = "a b"               | 4 | `a b` is no name                     | letters
[[element]]\nnf = "NOP"\nspeed = 1                  | 4 | no `speed` here                      | capacity
[[element]]\nnf = "NOP"\nset = 1                    | 4 | `set` is a table                     | docs/chains.md
[[element]]\nnf = "NOP"\nset = { rate = [1] }       | 4 | `rate` is a text or a number         | docs
[[element]]\nnf = "NOP"\nset = { rate = 1 }         | 4 | `set.rate`:\s                        | check
[[element]]\nnf = "NOP"\ncapacity = { flows = 1 }   | 4 | `capacity.flows`:\s                  | check
[[element]]\nnf = "NOP"\ncapacity = { flows = -1 }  | 4 | `capacity.flows`:\s                  | capacity
[[element]]\nnf = "NOP"\nmap = { flows = "x.csv" }  | 4 | no such object                       | objects
[[element]]\nnf = "NOP"\nprogram = "other"          | 4 | no program `other`                   | programs
[[element]]\nguest = ""                             | 3 | no program is named                  | @
[[element]]\nguest = 7                              | 3 | `guest` is a text                    | docs/chains.md
[[element]]\nguest = "gone-program @"               | 3 | gone-program                         |
[[element]]\nguest = "cat @"\nspeed = 1             | 4 | option `speed=1`                     |
[[element]]\nguest = "cat @"\nmemory = 1            | 4 | option `memory=1`                    |
[[element]]\nguest = "cat @"\nlimit = "soon"        | 4 | option `limit=soon`                  |
[[element]]\nguest = "cat @"\nfailing = "never"     | 4 | option `failing=never`               |
[[element]]\nguest = "cat @"\njit = "yes"           | 4 | option `jit=yes`                     |
[[element]]\nguest = "cat @"\nsend = "here"         | 4 | option `send=here`                   |
[[element]]\nguest = "cat @"\nenvironment = 1       | 4 | `environment` is a table             | docs
[[element]]\nguest = "cat @"\nrestore = "x"         | 3 | both a program and a snapshot        | `guest` out
[[element]]\nnf = "NOP"\n[[element]]\nnf = "NOP"    | 5 | two elements `nop`                   | of its own
connect = 1\n[[element]]\nnf = "NOP"                | 2 | `connect` is a list of pairs         | docs
connect = [["a.0"]]\n[[element]]\nnf = "NOP"        | 2 | `connect` is a list of pairs         | docs
entry = ["nop"]\n[[element]]\nnf = "NOP"            | 2 | `nop` names no port                  | ELEMENT.PORT
entry = ["a.0"]\n[[element]]\nnf = "NOP"            | 2 | no element `a`                       | there are nop
entry = ["nop.0", "nop.x"]\n[[element]]\nnf = "NOP" | 2 | no port `x`                          | 0, 1
entry = ["nop.0"]\n[[element]]\nnf = "NOP"          | 4 | nop.1 is not connected               | entry
entry = ["nop.0",\n"nop.0", "nop.1"]\n[[element]]\nnf = "NOP" | 3 | nop.0 is connected twice             | entry
"#;

#[test]
fn each_wrong_element_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edge.toml");
    let nop = root().canonicalize().unwrap().join("nfs/nop");
    let mut missed = Vec::new();
    for [text, line, what, help] in rows(ELEMENTS) {
        let text = text.replace("NOP", &nop.display().to_string());
        std::fs::write(&path, format!("name = \"edge\"\n{text}\n")).unwrap();
        let said = refused(millrace().args(["check", path.to_str().unwrap()]), 2);
        let place = match line.as_str() {
            "0" => format!("error: {}: ", path.display()),
            line => format!("error: {}:{line}: ", path.display()),
        };
        let mut errors = said.lines().filter(|l| l.starts_with("error: "));
        let mut helps = said.lines().filter(|l| l.starts_with("help: "));
        let told = errors.any(|l| l.starts_with(&place) && l.contains(&what));
        if !told || !helps.any(|l| l.contains(&help)) {
            missed.push(format!("{text}\n{said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}
