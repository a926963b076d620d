# From the output of `cargo metadata`: the crates in $built (as `cargo tree` prints them), which the programs are built
# from, as CycloneDX. Metadata alone would add what tests need.
def purl: "pkg:cargo/\(.name)@\(.version)";

($built | split("\n") | map(split(" ")[:2] | join(" ")) | unique) as $built
| (.packages | map(select(IN("\(.name) v\(.version)"; $built[]))) | INDEX(.id)) as $crates
| def purls: map($crates[.] | select(.) | purl) | unique;
{
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { type: "application", "bom-ref": "parcelo", name: "parcelo", version: $version } },
    components: [$crates[]
        | { type: "library", "bom-ref": purl, name, version, purl: purl }
        + if .license then { licenses: [{ expression: (.license | gsub(" */ *"; " OR ")) }] } else {} end],
    dependencies: [.resolve.nodes[] | select($crates[.id])
        | { ref: ($crates[.id] | purl), dependsOn: (.dependencies | purls) }]
}
