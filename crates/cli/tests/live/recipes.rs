//! docs/recipes.md, typed as it stands there: each recipe by one shell, in a mount, network and process namespace of its own,
//! so that the page's names are free and all that it starts ends with it.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use super::net;
use crate::book::commands::shown;
use crate::book::markdown::{Block, split};
use crate::common::{millrace, root};

/// One at a time: each runs several programs beside the function.
static TURN: Mutex<()> = Mutex::new(());

/// What the shell's namespaces need before the page's first line; then commands end with the first that fails.
const BEFORE: &str = "mkdir -p /run/netns\nmount -t tmpfs netns /run/netns\nset -eu\n";

/// The words by which a shell gets namespaces that end with it.
const ALONE: [&str; 6] = [
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// The blocks below a heading.
fn blocks(heading: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join("docs/recipes.md")).unwrap();
    let (blocks, prose) = split(&text);
    let mut headings = prose.iter().filter(|(_, l)| l.starts_with("## "));
    let wanted = format!("## {heading}");
    let begin = headings
        .find(|(_, l)| *l == wanted)
        .unwrap_or_else(|| panic!("docs/recipes.md has no heading `{heading}`"))
        .0;
    let end = headings.next().map_or(usize::MAX, |(line, _)| *line);
    let within = |b: &Block| begin < b.line && b.line < end;
    blocks.into_iter().filter(within).collect()
}

/// A command of a `console` block: its line on the page, and lines that it prints.
struct Asked {
    line: usize,
    words: String,
    prints: Vec<String>,
}

fn asked(block: &Block) -> Vec<Asked> {
    let mut all: Vec<Asked> = Vec::new();
    for (line, text) in (block.line + 1..).zip(block.text.lines()) {
        match (text.strip_prefix("$ "), all.last_mut()) {
            (Some(words), _) => all.push(Asked {
                line,
                words: words.to_owned(),
                prints: Vec::new(),
            }),
            (None, Some(last)) => last.prints.push(text.trim().to_owned()),
            (None, None) => panic!("docs/recipes.md:{line}: a block begins with `$ `"),
        }
    }
    all
}

/// Makes the files, and one script of all commands; what each of a `console` block prints goes to a file by its line.
fn script(blocks: &[Block], folder: &Path) -> (String, Vec<Asked>) {
    let (mut script, mut all) = (BEFORE.to_owned(), Vec::new());
    for block in blocks {
        if let Some(file) = &block.file {
            std::fs::write(folder.join(file), &block.text).unwrap();
        } else if block.info == "sh,no_run" {
            script.push_str(&block.text);
        } else if block.info == "console,no_run" {
            for asked in asked(block) {
                script.push_str(&format!(
                    "{{ {}\n}} > printed.{} 2>&1\n",
                    asked.words, asked.line
                ));
                all.push(asked);
            }
        }
    }
    (script, all)
}

/// Whether the tools of a recipe are there, and namespaces can be made; says so where not.
fn possible(tools: &[&str]) -> bool {
    let there = |tool: &&&str| net::run("which", &[tool]).is_ok_and(|o| o.status.success());
    let namespaces = || {
        let made = net::run("unshare", &[&ALONE[..], &["true"]].concat());
        made.is_ok_and(|o| o.status.success())
    };
    let lacking = match tools.iter().find(|t| !there(t)) {
        Some(tool) => Some(format!("no {tool}")),
        None => net::lacking(),
    };
    let lacking = lacking.or_else(|| (!namespaces()).then(|| "unshare makes no namespaces".into()));
    if let Some(why) = &lacking {
        println!("skipped: {why}");
    }
    lacking.is_none()
}

/// Types a recipe.
fn typed(heading: &str, tools: &[&str]) {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if !possible(tools) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("runtime")).unwrap();
    std::os::unix::fs::symlink(
        root().canonicalize().unwrap().join("nfs"),
        folder.path().join("nfs"),
    )
    .unwrap();
    let (script, all) = script(&blocks(heading), folder.path());
    assert!(!all.is_empty(), "the recipe shows nothing");
    std::fs::write(folder.path().join("script"), script).unwrap();
    let plain = millrace();
    let own = Path::new(plain.get_program()).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut shell = Command::new("timeout");
    shell
        .args(["--kill-after", "5", "180", "unshare"])
        .args(ALONE)
        .args(["bash", "script"])
        .current_dir(folder.path())
        .envs(plain.get_envs().filter_map(|(n, v)| Some((n, v?))))
        .env("PATH", format!("{}:{path}", own.display()))
        .env("XDG_RUNTIME_DIR", folder.path().join("runtime"))
        .stdin(std::process::Stdio::null())
        .stderr(log.try_clone().unwrap())
        .stdout(log);
    let status = shell.status().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).ok();
    let log = read("log").unwrap();
    let printed = |asked: &Asked| read(&format!("printed.{}", asked.line));
    // The last command that began is the one that failed.
    if !status.success() {
        let last = all.iter().rfind(|a| printed(a).is_some());
        let place = last.map_or("before the first `$`".to_owned(), |a| {
            format!(
                "docs/recipes.md:{}: $ {}\n{}",
                a.line,
                a.words,
                printed(a).unwrap()
            )
        });
        panic!("{heading}: {status}: {place}\nall that was printed beside:\n{log}");
    }
    for asked in &all {
        let text = printed(asked).unwrap();
        let mut lines = text.lines().map(str::trim);
        for expected in asked.prints.iter().filter(|p| *p != "…" && !p.is_empty()) {
            assert!(
                lines.any(|l| shown(l, expected)),
                "docs/recipes.md:{}: $ {}\nprints no line\n{expected}\nbut\n{text}\n{log}",
                asked.line,
                asked.words
            );
        }
    }
}

#[test]
fn a_nat_router_for_a_lab() {
    let tools = ["ping", "traceroute", "curl", "iperf3", "python3"];
    typed("A NAT router for a lab", &tools);
}

#[test]
fn a_transparent_firewall() {
    typed("A transparent firewall", &["ping", "curl", "python3"]);
}

#[test]
fn a_load_balancer_with_health_checks() {
    let tools = ["curl", "python3", "sysctl"];
    typed("A load balancer with health checks", &tools);
}

#[test]
fn a_tap_for_an_intrusion_detection_system() {
    let tools = ["ping", "curl", "python3", "tcpdump"];
    typed("A tap for an intrusion detection system", &tools);
}
