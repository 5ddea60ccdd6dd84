//! docs/recipes.md, typed as it stands there: each recipe by one shell, in a mount, network and process namespace of its own,
//! so that the page's names are free and all that it starts ends with it.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use super::net;
use crate::common::typed::{self, Asked};
use crate::common::{millrace, root};

/// The page.
const PAGE: &str = "docs/recipes.md";

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
fn recipe(heading: &str, tools: &[&str]) {
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
    let blocks = typed::blocks(PAGE, heading);
    let (script, all) = typed::script(PAGE, &blocks, folder.path(), ".");
    assert!(!all.is_empty(), "the recipe shows nothing");
    std::fs::write(folder.path().join("script"), BEFORE.to_owned() + &script).unwrap();
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
    let printed = |asked: &Asked| read(&asked.file());
    if !status.success() {
        let place = Asked::failed(&all, printed);
        panic!("{heading}: {status}: {place}\nall that was printed beside:\n{log}");
    }
    for asked in &all {
        asked.compare(&printed(asked).unwrap(), &log);
    }
}

#[test]
fn a_nat_router_for_a_lab() {
    let tools = ["ping", "traceroute", "curl", "iperf3", "python3"];
    recipe("A NAT router for a lab", &tools);
}

#[test]
fn a_router_for_ipv6() {
    recipe("A router for IPv6", &["ip", "ping", "traceroute", "iperf3"]);
}

#[test]
fn a_transparent_firewall() {
    recipe("A transparent firewall", &["ping", "curl", "python3"]);
}

#[test]
fn a_load_balancer_with_health_checks() {
    let tools = ["curl", "python3", "sysctl"];
    recipe("A load balancer with health checks", &tools);
}

#[test]
fn a_tap_for_an_intrusion_detection_system() {
    let tools = ["ping", "curl", "python3", "tcpdump"];
    recipe("A tap for an intrusion detection system", &tools);
}
