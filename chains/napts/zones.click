// Two zones with the same prefix, each behind a NAPT of its own, and both behind another one (the paper's figure 3): an answer goes back
// to the zone that opened its flow, although flows of both have the same addresses and ports.
require(library napt.clickinc)

n1 :: Napt(192.0.2.1, MAC 02:00:00:00:01:01);
n2 :: Napt(192.0.2.2, MAC 02:00:00:00:02:01);
last :: IPRewriter(pattern 198.51.100.1 1024-65535 - - 0 1, pattern 198.51.100.1 1024-65535 - - 0 2, drop);

FromDevice(zone1) -> [0] n1 [1] -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [0] last;
FromDevice(zone2) -> [0] n2 [1] -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [1] last;
FromDevice(internet) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [2] last;

last [0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:03:01, 02:00:00:00:01:02) -> Queue -> ToDevice(internet);
last [1] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:03:01, 02:00:00:00:01:01) -> [1] n1 [0] -> Queue -> ToDevice(zone1);
last [2] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:03:01, 02:00:00:00:02:01) -> [1] n2 [0] -> Queue -> ToDevice(zone2);
