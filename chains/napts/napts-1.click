// One NAPT.
require(library napt.clickinc)

n1 :: Napt(192.0.2.1, MAC 02:00:00:00:01:01);

FromDevice(inside) -> [0] n1;
FromDevice(outside) -> [1] n1;
n1 [0] -> Queue -> ToDevice(inside);
n1 [1] -> Queue -> ToDevice(outside);
