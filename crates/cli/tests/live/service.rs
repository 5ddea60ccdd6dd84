//! A service between interfaces: it is reloaded under traffic, and says what is in its way.

use std::path::Path;
use std::process::{Command, Stdio};

use millrace_turns::of_today;

use super::changes::{Control, Datagrams, reached};
use super::instance::{Instance, command};
use super::net::{KINDS, Net, run};
use crate::common::{json, millrace};

/// A function that drops datagrams from sources that are told it.
const GATE: &str = r#"#include <millrace/nf.h>
PORTS(LAN, WAN);
PARAM(__u32, loud, 0);
MAP(blocked, __be32, __u32, .capacity = 64);
MAP(seen, __be32, __u64, .capacity = 1024);
ON_PACKET(p)
{
	__be32 *source = packet_at(p, 26, __be32);
	__u64 one = 1, *count;
	__be32 key;

	if (source) {
		key = *source;
		if (map_get(&blocked, &key))
			return DROP_BECAUSE(blocked);
		count = map_get(&seen, &key);
		if (count)
			*count += 1;
		else
			map_put(&seen, &key, &one);
	}
	return FORWARD(peer(p));
}
"#;

fn write(folder: &Path, words: &str, gate: &str) -> String {
    let each: Vec<_> = words.split(',').map(|w| format!("{w:?}")).collect();
    // The repository may lie where a user of a test may not read.
    let nop = folder.join("nop.c");
    if !nop.exists() {
        std::fs::copy(crate::common::root().join("nfs/nop/nop.c"), &nop).unwrap();
    }
    let text = format!(
        "ports = [{}]\ncontrol = \"control.sock\"\n[[element]]\nname = \"gate\"\nnf = \"gate.c\"\n{gate}\n\
         [[element]]\nname = \"nop\"\nnf = \"nop.c\"\n",
        each.join(", "),
    );
    let path = folder.join("edge.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A rule that is added to a file and a function whose source changes: no datagram of others is lost, doubled or
/// overtaken, and the state is kept.
#[test]
fn a_service_is_reloaded_on_every_kind_of_live_port() {
    for kind in of_today("kinds of port of a service", KINDS, 3) {
        let Some(net) = Net::new(kind) else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("gate.c"), GATE).unwrap();
        std::fs::write(file("b.csv"), "192.0.2.1,1\n").unwrap();
        let words = net.words("");
        let rules = "map = { blocked = \"b.csv\" }";
        let path = write(folder.path(), &words, rules);
        let instance = Instance::start(&net, "n", &[&path]);
        net.settle();
        reached(&net);
        let control = Control(file("control.sock").display().to_string());
        let datagrams = Datagrams::begin(&net, &[1, 11]);
        datagrams.more(100);
        // One rule.
        std::fs::write(file("b.csv"), "192.0.2.1,1\n10.0.0.11,1\n").unwrap();
        let done = control.ask(&["ctl", "reload"]);
        assert_eq!(done["entries"][0]["set"], 1, "{kind}: {done}");
        datagrams.more(100);
        // One element.
        std::fs::write(file("gate.c"), GATE.replace("1024", "2048")).unwrap();
        let done = control.ask(&["ctl", "reload"]);
        assert_eq!(done["replaced"][0]["element"], "gate", "{kind}: {done}");
        let kept = done["kept"].as_array().unwrap();
        let blocked = kept.iter().find(|k| k["object"] == "blocked").unwrap();
        assert_eq!(blocked["entries"], 2, "{kind}: {done}");
        datagrams.more(100);
        // Both, and a parameter.
        write(folder.path(), &words, "set = { loud = 1 }");
        std::fs::write(file("gate.c"), GATE.replace("1024", "4096")).unwrap();
        let done = control.ask(&["ctl", "reload"]);
        assert_eq!(done["entries"][0]["deleted"], 2, "{kind}: {done}");
        datagrams.more(100);
        let (sent, got) = datagrams.end();
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{kind}: {account}");
        let own = &got[&1];
        // In order and none twice; what is not there the system says it has lost, where this machine is too busy.
        assert!(own.is_sorted_by(|a, b| a < b), "{kind}");
        let lost = sent as usize - own.len();
        assert!(
            lost <= missed(&net, &account),
            "{kind}: {lost} lost: {account}"
        );
        // The other one was shut out for a while, and in order before and after.
        let other = &got[&11];
        assert!(other.is_sorted_by(|a, b| a < b), "{kind}");
        assert!(other.len() < sent as usize, "{kind}");
        assert!(other.last() > Some(&(sent - 60)), "{kind}: {other:?}");
        println!("{kind}: {sent} packets through 3 reloads");
    }
}

/// Datagrams that a ring of the run or the receiver's socket had no room for.
pub fn missed(net: &Net, account: &serde_json::Value) -> usize {
    let queues = account["queues"].as_array().into_iter().flatten();
    let rings: u64 = queues.filter_map(|q| q["missed"].as_u64()).sum();
    let counts = net.within("b", "cat", &["/proc/net/snmp"]).stdout;
    let counts = String::from_utf8(counts).unwrap();
    let mut lines = counts.lines().filter(|l| l.starts_with("Udp:"));
    let (names, numbers) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(numbers.split(' '));
    let full = pairs.find(|(name, _)| *name == "RcvbufErrors").unwrap();
    rings as usize + full.1.parse::<usize>().unwrap()
}

#[test]
fn two_services_on_one_interface_know_of_each_other() {
    for kind in ["afpacket", "afxdp", "tap"] {
        let Some(net) = Net::new(kind) else { return };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gate.c"), GATE).unwrap();
        let words = net.words("");
        let path = write(folder.path(), &words, "");
        let first = Instance::start(&net, "n", &[&path]);
        let control = folder.path().join("other.sock").display().to_string();
        let more = ["--control", &control, "--seconds", "0.2"];
        let mut second = command(&net, "n", &[&[path.as_str()], &more[..]].concat());
        let output = second.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let word = words.split(',').next().unwrap();
        if kind == "afpacket" {
            let note = format!("note: {word}: process ");
            assert!(said.contains(&note), "{kind}: {said}");
            assert_eq!(output.status.code(), Some(0), "{kind}: {said}");
        } else {
            assert_eq!(output.status.code(), Some(2), "{kind}: {said}");
            let place = format!("error: {path}:1: ");
            assert!(said.contains(&place), "{kind}: {said}");
            let help = said.lines().find(|l| l.starts_with("help: ")).unwrap();
            assert!(
                help.contains(" serves ") && help.contains(word),
                "{kind}: {said}"
            );
        }
        let (account, status) = first.stop();
        assert_eq!(status, 0, "{kind}: {account}");
    }
}

#[test]
fn a_port_without_permission_is_told_and_nothing_is_left() {
    if !run("setpriv", &["--version"]).is_ok_and(|o| o.status.success()) {
        println!("skipped: setpriv is not installed");
        return;
    }
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("gate.c"), GATE).unwrap();
    // This user may open the one and not the other.
    net.ip("n", "tuntap add dev own0 mode tap user 65534");
    let path = write(folder.path(), "tap:own0?up=off,afpacket:b1", "");
    let made = json(millrace().args(["check", &path]));
    assert_eq!(made.1, 0, "{}", made.0);
    let plain = millrace();
    let envs: Vec<_> = plain.get_envs().collect();
    let open = |path: &Path| {
        Command::new("chmod")
            .args(["-R", "a+rwX"])
            .arg(path)
            .status()
    };
    assert!(open(folder.path()).unwrap().success());
    let cache = tempfile::tempdir().unwrap();
    assert!(open(cache.path()).unwrap().success());
    let copied = folder.path().join("millrace");
    std::fs::copy(plain.get_program(), &copied).unwrap();
    assert!(open(folder.path()).unwrap().success());
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &net.name("n"), "setpriv"]);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["--inh-caps=-all", "--bounding-set=-all"]);
    command
        .arg(&copied)
        .args(["run", &path, "--control", "none"]);
    for (name, value) in envs {
        command.env(name, value.unwrap_or_default());
    }
    command.env("MILLRACE_CACHE", cache.path().join("own"));
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let place = format!("error: {path}:1: afpacket:b1: ");
    assert!(
        said.contains(&place) && said.contains("CAP_NET_RAW"),
        "{said}"
    );
}
