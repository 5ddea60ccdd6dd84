//! `check`, `test`, `build`, `emit` and `trace`, from outside.

use crate::common;

use common::{GATE, capture, each_byte, json, millrace, output, refused, success};
use serde_json::json;

#[test]
fn check_shows_what_a_function_declares() {
    let document = success(millrace().args(["check", GATE]));
    assert_eq!(document["name"], "gate");
    assert_eq!(document["dialect"], "handlers");
    assert_eq!(
        (&document["admitted"], &document["refusals"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(document["ports"], json!(["LAN", "WAN", "DMZ"]));
    assert_eq!(
        document["params"],
        json!([{"name": "limit", "type": "__u32", "value": 1000}])
    );
    assert_eq!(
        document["helpers"],
        json!(["map_get", "map_put", "vector_at"])
    );
    let seen = common::named(&document["objects"], "seen");
    for (field, value) in [
        ("kind", json!("map")),
        ("key_bytes", json!(8)),
        ("value_bytes", json!(8)),
        ("capacity", json!(256)),
    ] {
        assert_eq!(seen[field], value, "{field}");
    }
}

#[test]
fn what_check_predicts_is_what_run_predicts_and_what_the_module_maps() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    for nf in [GATE, "policer", "heavyhitter"] {
        let (checked, _) = json(millrace().args(["check", nf]));
        let (account, _) = json(
            millrace()
                .args(["run", nf, "--out", "/dev/null", "--in"])
                .arg(&file),
        );
        assert_eq!(
            checked["memory"]["predicted"], account["memory"]["predicted"],
            "{nf}"
        );
        for (declared, mapped) in checked["objects"]
            .as_array()
            .unwrap()
            .iter()
            .zip(account["objects"].as_array().unwrap())
        {
            assert_eq!(declared["name"], mapped["name"]);
            assert_eq!(
                declared["bytes"], mapped["bytes"],
                "{nf}: {declared} {mapped}"
            );
        }
    }
}

#[test]
fn an_unsafe_function_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("peek.c");
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\nSEC(\"xdp\")\nint peek(struct xdp_md *ctx)\n{\n\t__u8 *p = (void *)(long)ctx->data;\n\n\treturn p[3] ? XDP_PASS : XDP_DROP;\n}\n";
    std::fs::write(&source, text).unwrap();
    let (document, status) = json(millrace().arg("check").arg(&source));
    assert_eq!((status, &document["admitted"]), (1, &json!(false)));
    let refusal = &document["refusals"][0];
    assert_eq!(
        (&refusal["line"], &refusal["function"]),
        (&json!(9), &json!("peek"))
    );
    assert!(
        refusal["instruction"].is_u64() && !refusal["remedy"].as_str().unwrap().is_empty(),
        "{refusal}"
    );

    let (_, text) = output(millrace().arg("check").arg(&source));
    assert!(
        text.contains("return p[3] ? XDP_PASS : XDP_DROP;") && text.contains("^"),
        "{text}"
    );
    refused(
        millrace()
            .arg("run")
            .arg(&source)
            .args(["--in", "/dev/null"]),
        1,
    );
}

#[test]
fn what_does_not_compile_is_shown_as_the_compiler_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("broken.c");
    std::fs::write(
        &source,
        "#include <millrace/nf.h>\nON_PACKET(p)\n{\n\treturn FORWARD(nowhere);\n}\n",
    )
    .unwrap();
    let text = refused(millrace().arg("check").arg(&source), 2);
    assert!(
        text.contains("broken.c:4") && text.contains("nowhere"),
        "{text}"
    );
}

#[test]
fn packet_tests_pass_and_fail_where_they_should() {
    let (document, status) = json(millrace().args(["test", GATE]));
    assert_eq!(
        (status, &document["passed"], &document["failed"]),
        (0, &json!(1), &json!(0))
    );
    assert_eq!(
        document["cases"][0]["title"],
        "Each byte has its fate; the limit is per byte."
    );

    let dir = tempfile::tempdir().unwrap();
    let case = |text: &str| {
        let file = dir.path().join("case.pkt");
        std::fs::write(&file, text).unwrap();
        let (document, status) = json(millrace().args(["test", GATE, "--case"]).arg(&file));
        assert_eq!(status, 1, "{document}");
        let result = &document["cases"][0];
        (
            result["line"].as_u64(),
            result["message"].as_str().unwrap().to_owned(),
        )
    };
    let (line, message) = case("LAN: raw 0100\n  -> DMZ\n");
    assert_eq!(line, Some(2));
    assert!(
        message.starts_with("expected forward to DMZ, got forward to WAN"),
        "{message}"
    );
    let (line, message) = case("LAN: raw 0700\n  -> LAN: raw ff00\n");
    assert_eq!(line, Some(2));
    assert!(
        message.contains("expected  ff 00") && message.contains("got       ee 00"),
        "{message}"
    );
    let (line, message) = case("LAN: raw 0600\n");
    assert_eq!(line, Some(1));
    assert!(message.contains("aborted"), "{message}");
    let (line, message) = case("LAN: raw 01\n\nstate seen = 2\n");
    assert_eq!(line, Some(3));
    assert!(
        message.contains("`seen` holds 1 live entries, expected 2"),
        "{message}"
    );
    let (line, message) = case("set nosuch=1\nLAN: raw 01\n");
    assert_eq!(
        (line, message.contains("no parameter `nosuch`")),
        (Some(1), true),
        "{message}"
    );
    let (line, _) = case("LAN: raw 01\nnonsense\n");
    assert_eq!(line, Some(2));
    let (line, message) = case("XYZ: raw 01\n");
    assert_eq!(
        (line, message.contains("LAN, WAN, DMZ")),
        (Some(1), true),
        "{message}"
    );
    let (line, message) = case("records seen = 1\n");
    assert_eq!(
        (line, message.contains("not a ring buffer")),
        (Some(1), true),
        "{message}"
    );
}

/// Paths are followed once, by whichever process comes first; a file that has rotted is made again.
#[test]
fn a_model_is_kept_for_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let planned = || {
        let mut command = millrace();
        command.env("MILLRACE_CACHE", &cache);
        let plan = success(command.args(["plan", "policer", "--cores", "4"]));
        assert!(plan["objects"].is_array(), "{plan}");
        plan["objects"].clone()
    };
    let kept = || {
        let files = std::fs::read_dir(cache.join("models")).unwrap();
        files.map(|f| f.unwrap().path()).collect::<Vec<_>>()
    };
    let first = planned();
    let [file] = kept().try_into().unwrap();
    let made = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(planned(), first);
    assert_eq!(kept(), std::slice::from_ref(&file));
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), made);
    std::fs::write(&file, "rotten").unwrap();
    assert_eq!(planned(), first);
    assert!(std::fs::metadata(&file).unwrap().len() > 1000);
}

#[test]
fn a_bundle_runs_without_a_compiler() {
    let dir = tempfile::tempdir().unwrap();
    let (bundle, file) = (dir.path().join("bundle"), dir.path().join("in.pcap"));
    capture(&file, &each_byte());
    let document = success(millrace().args(["build", GATE, "-o"]).arg(&bundle));
    assert_eq!(document["name"], json!("gate"));
    let account = success(
        millrace()
            .env("PATH", "")
            .env("MILLRACE_CACHE", dir.path().join("none"))
            .arg("run")
            .arg(&bundle)
            .args(["--set", "limit=0", "--in"])
            .arg(&file),
    );
    assert_eq!(
        (&account["name"], &account["read"]),
        (&json!("gate"), &json!(9))
    );
    assert_eq!(account["ports"][0]["name"], "LAN");

    std::fs::write(bundle.join("manifest.json"), "{}").unwrap();
    refused(millrace().arg("run").arg(&bundle).arg("--in").arg(&file), 2);
    refused(millrace().args(["build", GATE, "-o"]).arg(dir.path()), 2);
}

#[test]
fn emit_prints_c_that_says_where_it_comes_from() {
    let (output, _) = output(millrace().args(["emit", GATE, "--target", "c"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("#line") && text.contains("gate.c") && text.contains("millrace_module"));
}

#[test]
fn traffic_is_made_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.pcap");
    let generate = |more: &[&str]| {
        json(
            millrace()
                .args(["trace", "gen", "--packets", "3000", "--flows", "50", "-o"])
                .arg(&file)
                .args(more),
        )
    };
    let (document, status) = generate(&["--seed", "7"]);
    assert_eq!((status, &document["written"]["packets"]), (0, &json!(3000)));
    assert_eq!(document["spec"]["seed"], 7);
    let first = std::fs::read(&file).unwrap();
    generate(&["--seed", "7"]);
    assert!(
        first == std::fs::read(&file).unwrap(),
        "the same seed gives other bytes"
    );
    generate(&["--seed", "8"]);
    assert!(
        first != std::fs::read(&file).unwrap(),
        "another seed gives the same bytes"
    );

    let document = success(millrace().args(["trace", "info"]).arg(&file));
    assert_eq!(document["packets"], json!(3000));
    refused(
        millrace()
            .args(["trace", "gen", "--flows", "0", "-o"])
            .arg(&file),
        2,
    );
    refused(millrace().args(["trace", "info", "/nowhere.pcap"]), 2);
}

#[test]
fn an_operator_gives_an_object_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    let checked = success(millrace().args(["check", GATE, "--capacity", "seen=100000"]));
    let account = success(
        millrace()
            .args(common::words(&format!(
                "run {GATE} --capacity seen=100000 --out /dev/null --in"
            )))
            .arg(&file),
    );
    assert_eq!(
        checked["memory"]["predicted"],
        account["memory"]["predicted"]
    );
    let seen = common::named(&account["objects"], "seen");
    assert_eq!(seen["capacity"], 100_000);
    for wrong in ["seen", "seen=many", "nosuch=5", "seen=0"] {
        refused(millrace().args(["check", GATE, "--capacity", wrong]), 2);
        let mut run = millrace();
        run.args(["run", GATE, "--capacity", wrong, "--in"])
            .arg(&file);
        refused(&mut run, 2);
    }
}
