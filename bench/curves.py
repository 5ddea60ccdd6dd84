"""The page of curves that bench/shard.sh makes: what was measured, and what the cost model says beyond it.

Usage: curves.py LINES FOLDER PROCESSORS TURNS PACKETS. LINES has a JSON document a line, as shard.sh writes them.
"""
import collections
import html
import json
import math
import os
import platform
import sys

COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf"]
WIDTH, HEIGHT, LEFT, BOTTOM = 420, 260, 56, 40


def points(lines):
    """Each figure: curve, function, traffic, strategy, x, cores, Mpps, and whether it was measured or simulated."""
    found, refused, latency = [], [], []
    for line in lines:
        about = {k: line[k] for k in ("curve", "nf", "traffic", "x")}
        document = line["document"]
        if line["why"] or document is None:
            refused.append({**about, "verb": line["verb"], "why": line["why"] or "no document"})
            continue
        if line["verb"] == "plan":
            works = {w["strategy"]: w for w in (document["measured"] or {}).get("strategies", [])}
            for p in document["predicted"]:
                writes = works.get(p["strategy"], {}).get("writes")
                found.append({**about, "strategy": p["strategy"], "cores": p["cores"], "mpps": p["mpps"],
                              "writes": writes, "kind": "simulated" if p["simulated"] else "predicted"})
            for no in (document["measured"] or {}).get("unmeasured", []):
                refused.append({**about, "verb": "plan", "why": f"{no['strategy']}: {no['why']}"})
            continue
        for skipped in document["skipped"]:
            refused.append({**about, "verb": "bench", "why": f"{skipped['cores']} cores: {skipped['why']}"})
        for run in document["runs"]:
            if about["curve"] == "latency":
                latency.append({**about, **{k: run[k] for k in ("strategy", "cores", "mpps", "p50_ns", "p99_ns")}})
                continue
            found.append({**about, "strategy": run["strategy"], "cores": run["cores"], "mpps": run["mpps"],
                          "low": run["spread"]["low"], "high": run["spread"]["high"], "writes": run["writes"],
                          "imbalance": run["imbalance"], "kind": "measured"})
    return found, refused, latency


def flows_a_minute(figure):
    """New flows a minute at the figure's own rate; none where nobody counted who writes."""
    if not figure.get("writes"):
        return ""
    return f"{figure['writes'] * figure['mpps'] * 60e6:.3g}"


def plot(title, series, x_label, log_x):
    """An SVG of lines {name: [(x, y, solid)]}; what is not solid is simulated and dashed."""
    everything = [p for line in series.values() for p in line]
    if not everything:
        return ""
    place = (lambda x: math.log10(x)) if log_x else (lambda x: x)
    xs = sorted({x for x, _, _ in everything})
    low, high = place(xs[0]), place(xs[-1])
    top = max(y for _, y, _ in everything) * 1.05 or 1
    px = lambda x: LEFT + (place(x) - low) / ((high - low) or 1) * (WIDTH - LEFT - 10)
    py = lambda y: HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - 24)
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 16 * len(series)}" width="{WIDTH}">',
           f'<text x="{LEFT}" y="14" font-weight="bold">{html.escape(title)}</text>',
           f'<path d="M{LEFT} 20V{HEIGHT - BOTTOM}H{WIDTH - 10}" stroke="#444" fill="none"/>',
           f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(x_label)}</text>']
    for x in xs:
        out.append(f'<text x="{px(x):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{x:g}</text>')
    for share in (0.25, 0.5, 0.75, 1):
        y = top * share
        out.append(f'<text x="{LEFT - 4}" y="{py(y) + 4:.1f}" text-anchor="end">{y:.1f}</text>'
                   f'<path d="M{LEFT} {py(y):.1f}H{WIDTH - 10}" stroke="#ddd"/>')
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        line = sorted(line)
        for (x0, y0, _), (x1, y1, solid) in zip(line, line[1:]):
            dash = "" if solid else ' stroke-dasharray="5 4"'
            out.append(f'<path d="M{px(x0):.1f} {py(y0):.1f}L{px(x1):.1f} {py(y1):.1f}" stroke="{colour}" fill="none"{dash}/>')
        for x, y, solid in line:
            fill = colour if solid else "white"
            out.append(f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" stroke="{colour}" fill="{fill}"/>')
        out.append(f'<text x="{LEFT}" y="{HEIGHT + 12 + 16 * number}" fill="{colour}">{html.escape(name)}</text>')
    return "".join(out) + "</svg>"


def over_cores(found):
    """For each function and traffic, Mpps over cores: measured where it was, simulated behind that. All strategies
    begin with what one core does alone."""
    groups = collections.defaultdict(lambda: collections.defaultdict(dict))
    alone = {}
    for p in (p for p in found if p["curve"] == "cores"):
        group = p["nf"], p["traffic"]
        if p["kind"] == "measured" and p["cores"] == 1:
            alone[group] = p
        elif p["kind"] == "measured":
            groups[group][p["strategy"]][p["cores"]] = p
        elif p["kind"] == "simulated":
            groups[group][p["strategy"]].setdefault(p["cores"], p)
    for group, lines in groups.items():
        for at in lines.values():
            if group in alone:
                at[1] = alone[group]
        series = {s: [(c, p["mpps"], p["kind"] == "measured") for c, p in at.items()] for s, at in lines.items()}
        yield plot(", ".join(group), series, "cores", False)


def over_x(found, curve, label, cores):
    """Mpps over x for each strategy and number of cores; an x of 0 stands at the left end."""
    lines = collections.defaultdict(list)
    smallest = min((p["x"] for p in found if p["curve"] == curve and p["x"] > 0), default=1)
    for p in found:
        if p["curve"] == curve and p["cores"] in cores and p["kind"] != "predicted":
            x = p["x"] or smallest / 10
            lines[f"{p['strategy']} on {p['cores']}, {p['kind']}"].append((x, p["mpps"], p["kind"] == "measured"))
    return plot(f"firewall, {label}", lines, label, True)


def main():
    path, folder, processors, turns, packets = sys.argv[1:]
    found, refused, latency = points([json.loads(line) for line in open(path)])
    conditions = {"system": platform.platform(), "processors": int(processors), "load": os.getloadavg()[0],
                  "turns": int(turns), "packets": int(packets), "frame": 64, "port": "memory; latency: vnic"}
    with open(os.path.join(folder, "shard.json"), "w") as out:
        json.dump({"points": found, "latency": latency, "refused": refused, "conditions": conditions}, out, indent=1)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in (
        p["nf"], p["traffic"], p["x"], p["strategy"], p["cores"], f"{p['mpps']:.2f}", p["kind"],
        "" if p.get("writes") is None else f"{p['writes'] * 100:.4f} %", flows_a_minute(p))) + "</tr>" for p in found)
    waits = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in (
        p["nf"], p["strategy"], p["cores"], f"{p['mpps']:.2f}", p["p50_ns"], p["p99_ns"])) + "</tr>" for p in latency)
    noes = "".join(f"<li>{html.escape(p['nf'])}, {html.escape(p['traffic'])}, {p['verb']}: {html.escape(p['why'])}</li>"
                   for p in refused)
    facts = html.escape(", ".join(f"{k} {v}" for k, v in conditions.items()))
    many = {1, int(processors), 16}
    page = f"""<!doctype html><meta charset="utf-8"><title>Curves over cores</title>
<style>body{{font:14px sans-serif;margin:2em}}svg{{font-size:11px;margin:8px}}td,th{{padding:1px 8px;text-align:right}}</style>
<h1>Curves over cores</h1><p>{facts}</p>
<p>Full dots and lines were measured; hollow dots and dashed lines are simulated: continued with the cost model
(docs/scaling.md) from what was measured on this machine.</p>
{"".join(over_cores(found))}
<h2>Packets that write</h2>{over_x(found, "writes", "per cent of packets that write", many)}
<h2>Churn</h2>{over_x(found, "churn", "flows replaced a minute of 60 Mpps, 64K live", many)}
<h2>Latency at 90 % of the highest rate without loss, software NIC</h2>
<table><tr><th>function<th>strategy<th>cores<th>Mpps<th>median, ns<th>99 %, ns</tr>{waits}</table>
<h2>All figures</h2><table><tr><th>function<th>traffic<th>x<th>strategy<th>cores<th>Mpps<th>kind<th>writes<th>writes a minute</tr>{rows}</table>
<h2>Not measured</h2><ul>{noes}</ul>"""
    with open(os.path.join(folder, "shard.html"), "w") as out:
        out.write(page)
    print(f"{len(found)} figures, {len(refused)} refusals: {folder}/shard.html, shard.json")


main()
