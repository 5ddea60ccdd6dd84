//! Rows as one linked program, against the rows themselves: the same packets, drop reasons by element, and entries.
//!
//! `MILLRACE_LINK_ROWS=200 cargo test -p millrace-cli --test it linked:: -- --nocapture` takes that many random rows of two to five
//! functions of nfs/, without the first `MILLRACE_LINK_SKIP` of them, and prints how many were compared, how many of these are one program, and why the others cannot be linked. With `MILLRACE_LINK_VERIFY=30` each that can
//! is verified on 4 cores, too, with so many seconds of processor time for its plan; by which strategies they are equal is printed.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::common::{millrace, output, root, success};

const CAPTURE: &str = "captures/talk.pcap";

/// Numbers from a seed (splitmix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// What of an account does not depend on how the row ran.
pub fn told(account: &Value) -> Value {
    let objects = account["objects"].as_array().unwrap().iter();
    let objects: Vec<_> = objects.map(|o| (&o["name"], &o["entries"])).collect();
    let fates = [
        "read",
        "forwarded",
        "dropped",
        "passed",
        "consumed",
        "aborted",
        "written",
        "created",
    ];
    let fates: BTreeMap<_, _> = fates.iter().map(|f| (*f, &account[*f])).collect();
    serde_json::json!({
        "fates": fates,
        "reasons": account["reasons"],
        "objects": objects,
        "timers": account["timers_fired"],
        "ports": account["ports"],
    })
}

/// The name of a row's first port; XDP programs have no names of ports.
fn first_port(row: &[&str]) -> &'static str {
    let source = root().join(format!("nfs/{0}/{0}.c", row.first().unwrap()));
    match std::fs::read_to_string(source)
        .unwrap()
        .contains("PORTS(LAN")
    {
        true => "lan",
        false => "0",
    }
}

/// The account and the packets of a row over a capture, and what it said; or why it does not run.
pub fn over(
    (row, link, more): (&[&str], &str, &[&str]),
    capture: &Path,
    out: &Path,
) -> Result<(Value, Vec<u8>, String), String> {
    let split = format!("{}=10.0.0.0/8,fd00::/8", first_port(row));
    let mut run = millrace();
    run.arg("run")
        .args(row)
        .args(["--link", link, "--json", "--seed", "7"]);
    run.args(["--in", capture.to_str().unwrap(), "--split", &split]);
    run.args(["--out", out.to_str().unwrap()]).args(more);
    let (done, said) = output(&mut run);
    if !done.status.success() {
        return Err(said);
    }
    let account = serde_json::from_slice(&done.stdout).unwrap();
    Ok((account, std::fs::read(out).unwrap(), said))
}

/// Traffic of several kinds, some of which answers itself.
fn generated(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("made.pcap");
    let mut make = millrace();
    make.args(crate::common::words(&format!(
        "trace gen -o {} --packets 3000 --flows 60",
        file.display()
    )));
    let (done, said) = output(&mut make);
    assert!(done.status.success(), "{said}");
    file
}

/// Compares one row, and says whether it is one program, or several; or why nothing of it can be linked.
fn compared(row: &[&str], captures: &[&Path], folder: &Path) -> Result<bool, String> {
    let mut whole = true;
    for capture in captures {
        let (one, other) = (folder.join("row.pcap"), folder.join("linked.pcap"));
        let linked = match over((row, "yes", &[]), capture, &other) {
            Ok(linked) => linked,
            Err(why) => {
                let line = why
                    .lines()
                    .find(|l| l.contains("cannot be linked") || l.contains("ports ("));
                let line = line.unwrap_or_else(|| panic!("{row:?}: {why}"));
                let reason = line
                    .split_once("linked: ")
                    .map_or("it has not two ports", |(_, r)| r);
                return Err(reason.to_owned());
            }
        };
        whole &= !linked.2.contains(" are not linked: ");
        let plain = over((row, "no", &[]), capture, &one);
        let plain = plain.unwrap_or_else(|why| panic!("{row:?}: {why}"));
        assert_eq!(
            told(&plain.0),
            told(&linked.0),
            "{row:?} over {}",
            capture.display()
        );
        assert!(
            plain.1 == linked.1,
            "{row:?} over {}: other packets",
            capture.display()
        );
    }
    Ok(whole)
}

/// Holds a linked row on four cores against one, over a capture; gives the strategy.
fn verified(row: &[&str], seconds: &str, capture: &Path) -> String {
    let split = format!("{}=10.0.0.0/8,fd00::/8", first_port(row));
    let mut verify = millrace();
    verify.args(["verify", &row.join("+"), "--json", "--cores", "4"]);
    verify.args(["--budget-time", seconds]);
    verify.args(["--in", capture.to_str().unwrap(), "--split", &split]);
    let (done, said) = output(&mut verify);
    let status = done.status.code();
    let found: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    let run = found["runs"].as_array().and_then(|runs| runs.first());
    match (status, run) {
        (Some(0), Some(run)) => run["strategy"].as_str().unwrap().to_owned(),
        // What cannot run on several cores is no difference.
        (Some(1 | 2), None) if found["differences"].as_array().is_none_or(Vec::is_empty) => {
            let why = said.lines().find(|l| l.starts_with("error: "));
            why.map_or(said.as_str(), |l| &l["error: ".len()..])
                .to_owned()
        }
        _ => panic!("{row:?}: {found:#}\n{said}"),
    }
}

#[test]
fn random_rows_give_the_packets_of_the_linked_program() {
    let number = |name, none| std::env::var(name).map_or(none, |n| n.parse().unwrap());
    let (rows, skipped): (usize, usize) = (
        number("MILLRACE_LINK_ROWS", 2),
        number("MILLRACE_LINK_SKIP", 0),
    );
    let seconds = std::env::var("MILLRACE_LINK_VERIFY").ok();
    let dir = tempfile::tempdir().unwrap();
    let made = generated(dir.path());
    let captures = [&root().join(CAPTURE), &made].map(|p| p.as_path().to_owned());
    let captures: Vec<&Path> = captures.iter().map(|p| p.as_path()).collect();
    let mut functions: Vec<String> = std::fs::read_dir(root().join("nfs"))
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    functions.sort();
    let mut draws = Draws(1);
    let (mut same, mut parts, mut refused) = (0, 0, BTreeMap::<String, usize>::new());
    let mut strategies = BTreeMap::<String, usize>::new();
    for drawn in 0..rows {
        let row: Vec<&str> = (0..2 + draws.below(4))
            .map(|_| {
                functions
                    .get(draws.below(functions.len()))
                    .unwrap()
                    .as_str()
            })
            .collect();
        if drawn < skipped {
            continue;
        }
        let found = match compared(&row, &captures, dir.path()) {
            Ok(false) => {
                parts += 1;
                "the same, in parts".to_owned()
            }
            Ok(true) => {
                same += 1;
                let strategy = seconds.as_ref().map(|s| verified(&row, s, &made));
                strategy.map_or("the same".to_owned(), |strategy| {
                    *strategies.entry(strategy.clone()).or_default() += 1;
                    format!("the same; equal on 4 cores: {strategy}")
                })
            }
            Err(why) => {
                *refused.entry(why.clone()).or_default() += 1;
                why
            }
        };
        println!("{}: {found}", row.join(" "));
    }
    println!(
        "linked: {same} rows as one program and {parts} in parts give the same; refused: {refused:#?}; equal on 4 cores: {strategies:#?}"
    );
    let all = same + parts + refused.values().sum::<usize>();
    assert_eq!(all, rows.saturating_sub(skipped));
}

#[test]
fn firewall_and_nat_are_one_program() {
    let dir = tempfile::tempdir().unwrap();
    let capture = root().join(CAPTURE);
    let whole = compared(&["firewall", "nat"], &[&capture], dir.path());
    assert_eq!(whole, Ok(true));
    // What the second one looks up is found for a batch at once.
    assert_eq!(
        compared(&["portscan", "acl"], &[&capture], dir.path()),
        Ok(true)
    );
    // Parameters and capacities are named by the element, as in a row.
    let mut run = millrace();
    run.args(crate::common::words(&format!(
        "run nat nat --link yes --in {}",
        capture.display()
    )));
    run.args(crate::common::words(
        "--split lan=10.0.0.0/8 --set nat-2:hop=0 --capacity nat:flows=7",
    ));
    let account = success(&mut run);
    let flows = crate::common::named(&account["objects"], "nat:flows");
    assert_eq!(flows["capacity"], 7);
    assert!(
        account["reasons"]["nat:table_full"].as_u64() > Some(0),
        "{account}"
    );
}

/// On several cores a run takes the program whose model a plan has left, and says which plan that would be where there is none.
#[test]
fn a_plan_of_before_links_a_row_on_several_cores() {
    let cache = tempfile::tempdir().unwrap();
    std::fs::set_permissions(cache.path(), Permissions::from_mode(0o700)).unwrap();
    // Workers of a row cannot share a capture, those of one program can.
    let go = |words: &[&str], runs: bool| {
        let mut command = millrace();
        command.env("MILLRACE_CACHE", cache.path()).args(words);
        let (done, said) = output(&mut command);
        assert_eq!(done.status.success(), runs, "{words:?}: {said}");
        said
    };
    let run = ["run", "policer", "cl", "--cores", "4", "--in", CAPTURE];
    let run = [&run[..], &["--split", "lan=10.0.0.0/8"]].concat();
    let said = go(&run, false);
    let plan = "`millrace plan policer+cl --cores 4` finds out";
    assert!(said.contains(plan) && !said.contains("linked"), "{said}");
    go(&["plan", "policer+cl", "--cores", "4"], true);
    let said = go(&run, true);
    assert!(
        said.contains("policer+cl: linked into one program: its plan shards 3 objects"),
        "{said}"
    );
    // What is asked for is done.
    let said = go(&[&run[..], &["--link", "no"]].concat(), false);
    assert!(!said.contains("linked"), "{said}");
}

/// Neighbours of what cannot be linked are one program each; names in the account are the same.
#[test]
fn what_can_be_linked_of_a_row_is_linked() {
    let dir = tempfile::tempdir().unwrap();
    let capture = root().join(CAPTURE);
    let row = ["firewall", "nat", "heavyhitter", "nop", "policer"];
    let whole = compared(&row, &[&capture], dir.path());
    assert_eq!(whole, Ok(false));
    let out = dir.path().join("out.pcap");
    let (account, _, said) = over((&row, "yes", &[]), &capture, &out).unwrap();
    let stages = account["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["firewall+nat", "heavyhitter", "nop+policer"],
        "{said}"
    );
    for line in [
        "firewall+nat: linked into one program",
        "nat and heavyhitter are not linked: heavyhitter cannot be linked: it has atomic instructions",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // What is said of an element on the command line is said of it where it is linked.
    let mut run = millrace();
    run.arg("run")
        .args(row)
        .args(["--link", "yes", "--in", CAPTURE]);
    run.args(["--split", "lan=10.0.0.0/8", "--capacity", "nat:flows=7"]);
    let account = success(&mut run);
    let flows = crate::common::named(&account["objects"], "nat:flows");
    assert_eq!(flows["capacity"], 7);
}

/// A chain file is linked as it connects its elements, and the part of it that one program is can be named.
#[test]
fn a_graph_of_a_file_is_linked_around_what_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("graph.toml");
    let nf = |name: &str| root().join("nfs").join(name).display().to_string();
    let text = format!(
        "connect = [['fw.WAN', 'hh.0'], ['hh.1', 'nat.LAN'], ['nat.WAN', 'last.0']]\nentry = ['fw.LAN', 'last.1']\n\
         [[element]]\nname = 'last'\nnf = '{}'\n[[element]]\nname = 'fw'\nnf = '{}'\ncapacity = {{ flows = 5000 }}\n\
         [[element]]\nname = 'hh'\nnf = '{}'\n[[element]]\nname = 'nat'\nnf = '{}'\nset = {{ hop = 0 }}\n",
        nf("nop"),
        nf("firewall"),
        nf("heavyhitter"),
        nf("nat"),
    );
    std::fs::write(&file, text).unwrap();
    let ran = |link: &str| {
        let out = dir.path().join(format!("{link}.pcap"));
        let mut run = millrace();
        run.args(crate::common::words(&format!(
            "run {} --in {CAPTURE} --link {link}",
            file.display()
        )));
        run.args(["--split", "lan=10.0.0.0/8", "--seed", "7", "--out"])
            .arg(&out);
        let account = success(&mut run);
        (account, std::fs::read(out).unwrap())
    };
    let (linked, row) = (ran("yes"), ran("no"));
    let stages = linked.0["stages"].as_array().unwrap().iter();
    let names: Vec<_> = stages.map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fw", "hh", "last+nat"]);
    let entries = |account: &Value| -> BTreeMap<String, Value> {
        let objects = account["objects"].as_array().unwrap().iter();
        let of = |o: &Value| (o["name"].as_str().unwrap().to_owned(), o["entries"].clone());
        objects.map(of).collect()
    };
    assert_eq!(entries(&linked.0), entries(&row.0));
    for key in ["read", "forwarded", "dropped", "reasons", "ports"] {
        assert_eq!(linked.0[key], row.0[key], "{key}");
    }
    assert!(linked.1 == row.1, "other packets");

    // What cannot be one program says which can be, and that has a model.
    let part = format!("{}:last+nat", file.display());
    let mut check = millrace();
    let checked = success(check.args(["check", &part]));
    assert_eq!(checked["admitted"], true, "{checked}");
    let objects = checked["objects"].as_array().unwrap();
    assert!(
        objects.iter().any(|o| o["name"] == "nat:flows"),
        "{checked}"
    );
    let (_, said) = output(millrace().args(["check", &format!("{}:last+fw+x", file.display())]));
    assert!(
        said.contains("no element `x`") && said.contains("last, fw, hh, nat"),
        "{said}"
    );

    // The picture has what is linked, and why the rest is not.
    let (dot, html) = (dir.path().join("c.dot"), dir.path().join("c.html"));
    let mut show = millrace();
    show.args(["chain", file.to_str().unwrap(), "--dot"])
        .arg(&dot);
    let shown = success(show.arg("--html").arg(&html));
    assert_eq!(
        shown["programs"],
        serde_json::json!(["last+nat", "fw", "hh"]),
        "{shown}"
    );
    assert_eq!(shown["elements"][3]["program"], "last+nat");
    let reason = shown["apart"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("atomic instructions"), "{shown}");
    let dot = std::fs::read_to_string(dot).unwrap();
    assert!(
        dot.contains("last+nat") && dot.contains("as it runs"),
        "{dot}"
    );
    let page = std::fs::read_to_string(html).unwrap();
    assert!(
        page.contains("last+nat") && page.ends_with("</html>\n"),
        "{page}"
    );
}

/// `verify` holds one program against its elements one after the other, too.
#[test]
fn a_linked_program_is_verified_against_its_row() {
    let mut verify = millrace();
    verify.args(["verify", "nop+policer", "--cores", "1"]);
    verify.args(["--generate", "packets=3000,flows=40"]);
    let found = success(&mut verify);
    assert_eq!(found["row"]["equal"], true, "{found}");
    assert_eq!(found["row"]["packets"], 3000);
    assert!(found["row"]["left"].as_u64() > Some(0), "{found}");
}

#[test]
fn an_element_that_cannot_be_linked_is_named_with_the_reason() {
    for (row, why) in [
        (
            ["firewall", "heavyhitter"],
            "heavyhitter cannot be linked: it has atomic instructions",
        ),
        (
            ["bridge", "bridge"],
            "bridge cannot be linked: it may send packets back to bridge-2",
        ),
    ] {
        let mut run = millrace();
        run.arg("run")
            .args(row)
            .args(["--link", "yes", "--in", CAPTURE]);
        let (done, said) = output(&mut run);
        assert!(
            done.status.code() == Some(1) && said.contains(why),
            "{row:?}: {said}"
        );
    }
}

/// A program without state is one function with the configuration behind it; its first port has no name, but the number 0.
#[test]
fn a_row_that_is_synthesised_keeps_the_names_of_its_ports() {
    let dir = tempfile::tempdir().unwrap();
    let (on, click) = (dir.path().join("on.c"), dir.path().join("tag.click"));
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
         SEC(\"xdp\") int on(struct xdp_md *ctx) { return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0); }\n";
    std::fs::write(&on, text).unwrap();
    let text = "FromDevice(inside) -> VLANEncap(7) -> Queue -> ToDevice(outside);\n\
                FromDevice(outside) -> Queue -> ToDevice(inside);\n";
    std::fs::write(&click, text).unwrap();
    let mut ran = Vec::new();
    for link in [&[][..], &["--link", "yes"], &["--link", "no"]] {
        let out = dir.path().join("out.pcap");
        let mut run = millrace();
        run.arg("run").args([&on, &click]).args(link);
        run.args(["--json", "--in", CAPTURE, "--split", "0=10.0.0.0/8"]);
        let (done, said) = output(run.arg("--out").arg(&out));
        assert!(done.status.success(), "{link:?}: {said}");
        assert_eq!(
            said.contains("synthesised as one function"),
            link != ["--link", "no"],
            "{said}"
        );
        let account: Value = serde_json::from_slice(&done.stdout).unwrap();
        ran.push((account["ports"].clone(), std::fs::read(&out).unwrap()));
    }
    let names: Vec<_> = { ran[0].0.as_array().unwrap().iter() }
        .map(|port| port["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["0", "outside"]);
    assert!(ran[0] == ran[2] && ran[1] == ran[2], "{:#?}", ran[0].0);
}

/// `XDP_REDIRECT` from a map, in a program that names no target: the kernel drops the packet. No port of an earlier packet or element
/// is one, nor is port 0.
#[test]
fn a_redirect_of_a_program_that_names_no_target_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("four.json");
    std::fs::write(&map, r#"[{"key": 0, "value": 4}]"#).unwrap();
    let source = |name: &str, text: &str| {
        let file = dir.path().join(format!("{name}.c"));
        let head = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n";
        std::fs::write(&file, format!("{head}{text}")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let act = source(
        "act",
        "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u32); } action SEC(\".maps\");\n\
         SEC(\"xdp\") int act(struct xdp_md *ctx) { __u32 k = 0, *a = bpf_map_lookup_elem(&action, &k); return a ? *a : XDP_PASS; }\n",
    );
    let on = source(
        "on",
        "SEC(\"xdp\") int on(struct xdp_md *ctx) { return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0); }\n",
    );
    for (row, map) in [
        (vec![act.as_str()], format!("action={}", map.display())),
        (vec![&on, &act], format!("act:action={}", map.display())),
        (vec![&act, &on], format!("act:action={}", map.display())),
    ] {
        for link in ["yes", "no"] {
            let mut run = millrace();
            run.arg("run").args(&row).args(["--map", &map]);
            run.args(["--in", CAPTURE, "--split", "0=10.0.0.0/8"]);
            if row.len() > 1 {
                run.args(["--link", link]);
            }
            let account = success(&mut run);
            let fate = |name: &str| account[name].as_u64().unwrap();
            let nowhere = account["reasons"]["no_such_port"].as_u64();
            assert_eq!(
                (fate("forwarded"), fate("aborted"), nowhere),
                (0, fate("read"), Some(fate("read"))),
                "{row:?} --link {link}: {account}"
            );
        }
    }
}

/// The C of a row as one program.
fn emitted(row: &str) -> String {
    let mut emit = millrace();
    emit.args(["emit", row, "--target", "c"]);
    let (done, said) = output(&mut emit);
    assert!(done.status.success(), "{row}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn an_element_goes_on_from_what_was_found_ahead_where_the_first_leaves_packets_as_they_are() {
    let c = emitted("firewall+nat");
    assert!(
        c.contains("return go_on0_on_packet(self, pkt, later);"),
        "packets of the LAN, which the firewall does not change"
    );
    // Sites are numbered within the pass: it has none of the firewall's, which on the WAN's side comes second and behind the NAT.
    let pass = c.split("later0_on_packet(").nth(1).unwrap();
    let pass = pass.split("\n}\n").next().unwrap();
    assert!(pass.contains("o2_nat_flows") && !pass.contains("o0_firewall_flows"));
    // From both sides the first one changes packets: what a later one would find ahead is of another packet.
    assert!(!emitted("nat+nat").contains("later"));
}

/// A capture with wrong sums in IPv4 headers, both zeros of one's complement among them.
fn with_wrong_sums(capture: &Path, to: &Path) {
    let mut bytes = std::fs::read(capture).unwrap();
    assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1], "pcap of nanoseconds");
    let mut sums = [0, 0xffff, 1, 0xfffe, 0xfeff, 0x0100].into_iter().cycle();
    let mut at = 24;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let frame = &mut bytes[at + 16..at + 16 + length];
        if length >= 34 && frame[12..14] == [8, 0] {
            frame[24..26].copy_from_slice(&u16::to_be_bytes(sums.next().unwrap()));
        }
        at += 16 + length;
    }
    std::fs::write(to, bytes).unwrap();
}

/// A sum that each element updates is what it would be element by element, right or wrong.
#[test]
fn ten_hops_leave_the_sum_of_ten_updates() {
    let dir = tempfile::tempdir().unwrap();
    let text = "#include <millrace/nf.h>\n\
         PORTS(LAN, WAN);\n\
         ON_PACKET(p)\n\
         {\n\
         \tstruct ipv4 *ip = packet_at(p, 14, struct ipv4);\n\
         \tif (!ip || ip->version_ihl >> 4 != 4)\n\
         \t\treturn FORWARD(peer(p));\n\
         \tif (ip->ttl < 2)\n\
         \t\treturn DROP_BECAUSE(ttl);\n\
         \tipv4_decrement_ttl(ip);\n\
         \tipv4_set_src(ip, ip->src ^ htonl(0x0101 << (ip->ttl & 7)));\n\
         \treturn FORWARD(peer(p));\n\
         }\n";
    let row: Vec<String> = (1..=10)
        .map(|n| {
            let file = dir.path().join(format!("hop{n}.c"));
            std::fs::write(&file, text).unwrap();
            file.to_str().unwrap().to_owned()
        })
        .collect();
    let row: Vec<&str> = row.iter().map(String::as_str).collect();
    // Of each two updates of each element but the very first one, on the way of common packets.
    let c = emitted(&row.join("+"));
    let stores = c.matches("= MR_MERGED(").count();
    assert!(stores >= 19, "{stores} sums of several updates");
    let wrong = dir.path().join("wrong.pcap");
    with_wrong_sums(&root().join(CAPTURE), &wrong);
    let run = |link: &str, capture: &Path| {
        let out = dir.path().join(format!("{link}.pcap"));
        let mut run = millrace();
        run.arg("run").args(&row).args(["--link", link]);
        run.args(crate::common::words(&format!(
            "--in {} --split lan=10.0.0.0/8",
            capture.display()
        )));
        run.args(["--out", out.to_str().unwrap()]);
        let account = success(&mut run);
        (told(&account), std::fs::read(out).unwrap())
    };
    for capture in [root().join(CAPTURE), wrong] {
        let (plain, linked) = (run("no", &capture), run("yes", &capture));
        assert_eq!(plain.0, linked.0, "{}", capture.display());
        assert!(plain.1 == linked.1, "{}: other packets", capture.display());
    }
}
