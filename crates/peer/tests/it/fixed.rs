//! Tables in files.

use millrace_cluster::NodeId;
use millrace_peer::Plan;

fn written(nodes: &str) -> String {
    format!("version = 3\nsecret = \"{}\"\n{nodes}", "0f".repeat(32))
}

fn node(name: &str, host: u8, buckets: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\npeer = \"10.9.0.{host}:7100\"\nbuckets = [{buckets}]\n")
}

#[test]
fn a_table_says_whose_each_bucket_is() {
    let text = written(&(node("a", 1, "\"0-2\", \"7\"") + &node("b", 2, "\"4-6\"")));
    let table = Plan::parse(&text).unwrap().table(8).unwrap();
    let owners: Vec<_> = table.owners.iter().map(|o| o.map(|n| n.0)).collect();
    let (a, b) = (Some(0), Some(1));
    assert_eq!(owners, [a, a, a, None, b, b, b, a]);
    assert_eq!((table.version, table.named("b")), (3, Some(NodeId(1))));
}

#[test]
fn what_is_no_table_is_refused_with_the_reason() {
    for (nodes, why) in [
        (String::new(), "missing field `node`"),
        (node("a", 1, "\"2-1\""), "no range of buckets"),
        (node("a", 1, "\"0-65536\""), "no range of buckets"),
        (
            node("a", 1, "") + &node("a", 2, ""),
            "has the name or the address of node a",
        ),
        (
            node("a", 1, "") + &node("b", 1, ""),
            "has the name or the address of node a",
        ),
        (node("a", 1, "") + "life = 1\n", "unknown field"),
    ] {
        let error = Plan::parse(&written(&nodes)).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let short = "version = 1\nsecret = \"0f\"\nnode = []\n";
    assert!(Plan::parse(short).unwrap_err().contains("64 hexadecimal"));
    let table = |nodes: String| Plan::parse(&written(&nodes)).unwrap().table(8).unwrap_err();
    let both = table(node("a", 1, "\"0-3\"") + &node("b", 2, "\"3\""));
    assert!(both.contains("bucket 3 is of two nodes"), "{both}");
    let beyond = table(node("a", 1, "\"0-8\""));
    assert!(
        beyond.contains("bucket 8: the plan of this function has 8"),
        "{beyond}"
    );
}
