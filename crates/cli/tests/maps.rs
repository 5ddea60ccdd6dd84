//! `millrace run --map`, from outside: what a file says decides where packets go.

use crate::common;

use common::{capture, millrace, refused, root, success};

/// Frames from one station to two others and to one that nobody knows.
fn frames() -> Vec<(u64, Vec<u8>)> {
    let frame = |to: u8| {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, 9, 0x88, 0xb5];
        frame.resize(60, 0);
        frame
    };
    [1, 2, 2, 3].map(|to| (1_000_000_000, frame(to))).to_vec()
}

#[test]
fn a_bridge_sends_where_its_file_says() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    capture(&input, &frames());
    for (name, text) in [
        (
            "a.json",
            r#"[{"key": "02:00:00:00:00:01", "value": 0}, {"key": [2,0,0,0,0,2], "value": 1}]"#,
        ),
        (
            "a.csv",
            "key,value\n02:00:00:00:00:01,0\n02:00:00:00:00:02,u32:1\n",
        ),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let account = success(
            millrace()
                .arg("run")
                .arg(root().join("nfs/sbridge"))
                .arg(format!("--map=stations={}", file.display()))
                .arg("--in")
                .arg(&input)
                .args(["--out", "null:"]),
        );
        assert_eq!(account["reasons"]["same_port"], 1, "{account}");
        assert_eq!(account["forwarded"], 3, "{account}");
        assert_eq!(account["ports"][1]["sent"], 3, "{account}");
        assert_eq!(account["objects"][0]["entries"], 2, "{account}");
    }
}

#[test]
fn what_cannot_be_set_is_refused_before_any_packet() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    capture(&input, &frames());
    let run = |nf: &str, map: &str, text: &str| {
        let file = dir.path().join("entries");
        std::fs::write(&file, text).unwrap();
        let mut command = millrace();
        command
            .arg("run")
            .arg(root().join("nfs").join(nf))
            .arg("--map")
            .arg(map.replace("FILE", file.to_str().unwrap()))
            .arg("--in")
            .arg(&input);
        refused(&mut command, 2)
    };
    let mac = "02:00:00:00:00:01";
    let full: String = (0..65537).map(|n| format!("u16:2 be32:{n},0\n")).collect();
    for (nf, map, text, what) in [
        ("sbridge", "stations", "", "not NAME=FILE"),
        ("sbridge", "=x", "", "not NAME=FILE"),
        ("sbridge", "stations=/nowhere", "", "/nowhere: "),
        ("sbridge", "macs=FILE", "", "the function has stations"),
        (
            "sbridge",
            "stations=FILE",
            "1,2\n",
            "line 1: key: 1 could be of any width",
        ),
        (
            "sbridge",
            "stations=FILE",
            "# x\n10.0.0.1,2\n",
            "line 2: key: `10.0.0.1` has 4 bytes, 6 are",
        ),
        (
            "sbridge",
            "stations=FILE",
            &format!("{mac},4294967296"),
            "value: 4294967296 does not fit",
        ),
        ("sbridge", "stations=FILE", mac, "line 1: not KEY,VALUE"),
        ("sbridge", "stations=FILE", "[", "not JSON"),
        (
            "sbridge",
            "stations=FILE",
            &full,
            "it holds 65536 entries and no more",
        ),
        ("cl", "opened=FILE", "1,1", "takes no entries"),
        ("nat", "leases=FILE", "1024,1", "takes no entries"),
        ("policer", ".rodata.params=FILE", "0,0", "takes no entries"),
    ] {
        let error = run(nf, map, text);
        assert!(error.contains(what), "{map} {text:.40}: {error}");
    }
}
