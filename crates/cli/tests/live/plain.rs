//! Plain names of interfaces, and what an ordinary user's capabilities allow.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::instance::{Instance, command};
use super::net::{Net, run, until};
use crate::common::{refused, root};

/// A user without any rights of its own.
const NOBODY: u32 = 65534;

fn facts(account: &serde_json::Value) -> String {
    account["facts"].to_string()
}

#[test]
fn a_plain_name_is_the_best_port_that_the_machine_allows() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    // The host uses one of them: afxdp: would take its packets.
    net.ip("n", "addr add 192.0.2.1/24 dev b1");
    let args = ["nfs/nop", "--ports", "a1,b1"];
    let instance = Instance::start(&net, "n", &args);
    let said = instance.said();
    assert!(said.contains("serving afxdp:a1, afpacket:b1"), "{said}");
    assert!(
        said.contains("the host has the address 192.0.2.1"),
        "{said}"
    );
    net.settle();
    let ping = ["-c", "3", "-i", "0.2", "-W", "5", "10.0.0.2"];
    let pinged = net.within("a", "ping", &ping);
    let text = String::from_utf8_lossy(&pinged.stdout).into_owned();
    assert!(text.contains(" 3 received, 0% packet loss"), "{text}");
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    let facts = facts(&account);
    assert!(facts.contains("a1 is served as afxdp:a1"), "{facts}");
    assert!(facts.contains("b1 is served as afpacket:b1"), "{facts}");
}

/// `XDP_PASS` where the port has taken the packet from the kernel: the run says that the host does not get it, or hands it to a
/// tap, on which the host answers.
#[test]
fn packets_that_are_passed_reach_the_host_or_the_run_says_that_they_do_not() {
    for tap in [false, true] {
        let Some(net) = Net::new("afxdp") else { return };
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("pass.c");
        let text =
            "#include <millrace/nf.h>\nPORTS(LAN, WAN);\nON_PACKET(p)\n{\n\treturn PASS;\n}\n";
        std::fs::write(&source, text).unwrap();
        let words = net.words("");
        let mut args = vec![source.to_str().unwrap(), "--ports", &words];
        if tap {
            args.extend(["--pass", "tap:host0"]);
        }
        let instance = Instance::start(&net, "n", &args);
        net.settle();
        // What was sent before a neighbour is known are ARP requests, which count as well.
        let sent = ["-c", "2", "-i", "0.2", "-W", "1", "10.0.0.2"];
        net.within("a", "ping", &sent);
        let warning = "packets are passed to the host and do not reach it";
        if tap {
            let counted = net.within("n", "cat", &["/sys/class/net/host0/statistics/rx_packets"]);
            let counted = String::from_utf8(counted.stdout).unwrap();
            assert!(counted.trim().parse::<u64>().unwrap() > 0, "{counted}");
            assert!(!instance.said().contains(warning), "{}", instance.said());
        } else {
            until("it says so", || instance.said().contains(warning));
            assert!(instance.said().contains("--pass tap:NAME"));
        }
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{account:#}");
        assert!(account["passed"].as_u64() > Some(0), "{account:#}");
    }
}

#[test]
fn a_plain_name_that_is_wrong_is_told_with_what_to_write() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let said = |ports: &str| {
        let args = ["nfs/nop", "--ports", ports];
        refused(&mut command(&net, "n", &args), 2)
    };
    let text = said("a1,nosuch0");
    assert!(text.contains("there is no interface `nosuch0`"), "{text}");
    let text = said("captures/talk.pcap,b1");
    assert!(text.contains("--in captures/talk.pcap"), "{text}");
    let text = said("a1?blocks=64,b1");
    assert!(text.contains("afpacket:a1?"), "{text}");
    // In --out a word that is no interface is a file, as ever.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("seen");
    let out = out.to_str().unwrap();
    let args = ["nfs/nop", "--in", "a1", "--out", out, "--seconds", "0.2"];
    let ended = command(&net, "n", &args).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

/// As in the example of docs/guests.md: what packets of a function write is under a lock, unasked.
#[test]
fn a_chain_on_several_cores_locks_what_packets_write() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let chain = crate::common::words("nfs/heavyhitter nfs/nop --ports a1,b1 --cores 2");
    // A veth pair of one queue: afxdp: has too few for two workers, which is told.
    let instance = Instance::start(&net, "n", &chain);
    let said = instance.said();
    assert!(
        said.contains("serving afpacket:a1, afpacket:b1 with 2 workers"),
        "{said}"
    );
    assert!(said.contains("receive queues"), "{said}");
    assert!(
        said.contains("what packets write is under a lock"),
        "{said}"
    );
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    for (strategy, words) in [
        ("spread", "cannot run as `spread`"),
        ("shard", "--strategy shard is for one function"),
    ] {
        let args = [&chain[..], &["--strategy", strategy]].concat();
        let output = command(&net, "n", &args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(words), "{text}");
    }
}

/// The command and a function where any user may read them, and a folder of that user's own.
struct Apart(tempfile::TempDir);

impl Apart {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(folder.path(), 0o755);
        let program = folder.path().join("millrace");
        std::fs::copy(env!("CARGO_BIN_EXE_millrace"), &program).unwrap();
        open(&program, 0o755);
        for name in ["nop", "portknock"] {
            let source = folder.path().join(name).with_extension("c");
            std::fs::copy(root().join(format!("nfs/{name}/{name}.c")), &source).unwrap();
            open(&source, 0o644);
        }
        let own = folder.path().join("own");
        std::fs::create_dir(&own).unwrap();
        chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `millrace run` as that user with these capabilities, in the function's namespace.
    fn run(&self, net: &Net, capabilities: &str, nf: &str, ports: &str) -> Command {
        let caps = capabilities.split(',').map(|c| format!(",+{c}"));
        let caps = format!("-all{}", caps.collect::<String>());
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &net.name("n"), "setpriv"])
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["--inh-caps", &caps, "--ambient-caps", &caps])
            .arg(self.path("millrace"))
            .arg("run")
            .arg(self.path(nf))
            .args(["--ports", ports])
            .env("MILLRACE_CACHE", self.path("own").join("cache"))
            .env("XDG_RUNTIME_DIR", self.path("own"))
            .current_dir("/");
        command
    }
}

fn setpriv() -> bool {
    let there = run("setpriv", &["--version"]).is_ok();
    if !there {
        println!("skipped: setpriv is not installed");
    }
    there
}

/// Capabilities of all threads of a process: permitted, effective and ambient.
fn capabilities(process: u32) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut all = Vec::new();
    for task in tasks.flatten() {
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        let lines = status.lines().filter_map(|line| line.split_once(":\t"));
        let sets = lines.filter(|(name, _)| ["CapPrm", "CapEff", "CapAmb"].contains(name));
        all.extend(sets.map(|(_, set)| u64::from_str_radix(set, 16).unwrap()));
    }
    all
}

#[test]
fn an_ordinary_users_capabilities_are_gone_before_the_first_packet() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    if !setpriv() {
        return;
    }
    let apart = Apart::new();
    let all = "net_raw,net_admin,bpf,perfmon,ipc_lock";
    for (nf, ports, kept) in [
        ("nop.c", "a1,b1", 0),
        // Maps of the kernel's are read with it.
        ("portknock.c", "xdp:a1", 1_u64 << 39),
    ] {
        let mut child = apart
            .run(&net, all, nf, ports)
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let errors = child.stderr.take().unwrap();
        let mut said = String::new();
        for line in std::io::BufRead::lines(std::io::BufReader::new(errors)) {
            said += &line.unwrap();
            if said.contains("serving ") {
                break;
            }
        }
        assert!(said.contains("serving "), "{said}");
        if kept == 0 {
            assert!(said.contains("serving afxdp:a1, afxdp:b1"), "{said}");
        }
        until("capabilities are given up", || {
            let sets = capabilities(child.id());
            !sets.is_empty() && sets.iter().all(|set| set & !kept == 0)
        });
        let pid = child.id().to_string();
        assert!(run("kill", &[&pid]).unwrap().status.success());
        assert!(child.wait().unwrap().success(), "{nf}");
    }
}

#[test]
fn what_is_missing_is_told_with_the_one_command_that_gives_it() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    if !setpriv() {
        return;
    }
    let apart = Apart::new();
    let cases = [
        (
            "net_admin",
            "nop.c",
            "afpacket:a1",
            "afpacket: needs CAP_NET_RAW",
        ),
        ("net_raw", "nop.c", "tap:t0", "tap: needs CAP_NET_ADMIN"),
        (
            "net_raw,net_admin",
            "nop.c",
            "afxdp:a1",
            "CAP_NET_ADMIN and CAP_BPF",
        ),
        (
            "net_raw,net_admin,bpf",
            "portknock.c",
            "xdp:a1",
            "CAP_BPF and CAP_PERFMON",
        ),
    ];
    for (capabilities, nf, ports, needs) in cases {
        let text = refused(&mut apart.run(&net, capabilities, nf, ports), 2);
        assert!(
            text.contains(needs) && text.contains("sudo setcap cap_net_raw,"),
            "{text}"
        );
    }
    // Packet memory that may not be locked: the capability is named before the smaller ring.
    let mut plain = apart.run(&net, "net_raw,net_admin,bpf", "nop.c", "afxdp:a1,afxdp:b1");
    let mut limited = Command::new("prlimit");
    limited
        .arg("--memlock=65536:65536")
        .arg(plain.get_program());
    limited.args(plain.get_args()).current_dir("/");
    for (name, value) in plain.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let text = refused(&mut limited, 2);
    assert!(
        text.contains("CAP_IPC_LOCK") && text.contains("64 KiB"),
        "{text}"
    );
    // A plain name has a port all the same.
    plain = apart.run(&net, "net_raw", "nop.c", "a1,b1");
    let ended = plain.args(["--seconds", "0.2"]).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{text}");
    assert!(text.contains("serving afpacket:a1, afpacket:b1"), "{text}");
}
