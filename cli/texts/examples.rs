//! The examples at the end of each command's help. A test parses each of their lines.

use super::Text;

/// The examples by the command's path: lines that can be typed as they are, with the reader's own numbers and files.
#[rustfmt::skip]
pub(crate) const EXAMPLES: &[(&str, Text)] = &[
    ("parcelo", Text { en: "parcelo config init\nparcelo order template > order.json\nparcelo order create order.json --label label.pdf\nparcelo track SBEC7K2M9QX4T8WD0", es: "parcelo config init\nparcelo order template > pedido.json\nparcelo order create pedido.json --label etiqueta.pdf\nparcelo track SBEC7K2M9QX4T8WD0" }),
    ("parcelo order create", Text { en: "parcelo order create order.json --label label.pdf\nparcelo order create usual.json --set idempotencyKey=order-1002 --set receiver.fullName=Rosa", es: "parcelo order create pedido.json --label etiqueta.pdf\nparcelo order create habitual.json --set idempotencyKey=pedido-1002 --set receiver.fullName=Rosa" }),
    ("parcelo order import", Text { en: "parcelo order import orders.csv --labels out --dry-run\nparcelo order import orders.csv --labels out\nparcelo order import shop.csv --map-template > columns.toml\nparcelo order import orders_export.csv --preset shopify --map columns.toml --labels out\nparcelo order import orders.csv --sender sender.toml --labels out", es: "parcelo order import pedidos.csv --labels salida --dry-run\nparcelo order import pedidos.csv --labels salida\nparcelo order import tienda.csv --map-template > columnas.toml\nparcelo order import orders_export.csv --preset shopify --map columnas.toml --labels salida\nparcelo order import pedidos.csv --sender remitente.toml --labels salida" }),
    ("parcelo order void", Text { en: "parcelo order void SBEC7K2M9QX4T8WD0 --reason Cancelled\nparcelo order void - --yes < numbers.txt", es: "parcelo order void SBEC7K2M9QX4T8WD0 --reason Cancelado\nparcelo order void - --yes < números.txt" }),
    ("parcelo order validate", Text { en: "parcelo order validate order.json\nparcelo order validate orders.ndjson -o ndjson", es: "parcelo order validate pedido.json\nparcelo order validate pedidos.ndjson -o ndjson" }),
    ("parcelo order template", Text { en: "parcelo order template --country CO > order.json\nparcelo order template --from SBEC7K2M9QX4T8WD0 > order.json\nparcelo order template --csv > orders.csv", es: "parcelo order template --country CO > pedido.json\nparcelo order template --from SBEC7K2M9QX4T8WD0 > pedido.json\nparcelo order template --csv > pedidos.csv" }),
    ("parcelo manifest submit", Text { en: "parcelo manifest submit SBEC7K2M9QX4T8WD0 --awb 176-12345675 --flight EK213 --from MIA --to UIO\nparcelo manifest submit - --awb 176-12345675 < numbers.txt", es: "parcelo manifest submit SBEC7K2M9QX4T8WD0 --awb 176-12345675 --flight EK213 --from MIA --to UIO\nparcelo manifest submit - --awb 176-12345675 < números.txt" }),
    ("parcelo manifest show", Text { en: "parcelo manifest show 176-12345675\nparcelo manifest show man_01KE6JQ300QBVWKKWZ480GFQEK", es: "parcelo manifest show 176-12345675\nparcelo manifest show man_01KE6JQ300QBVWKKWZ480GFQEK" }),
    ("parcelo track", Text { en: "parcelo track SBEC7K2M9QX4T8WD0 --history\nparcelo track numbers.txt --watch", es: "parcelo track SBEC7K2M9QX4T8WD0 --history\nparcelo track números.txt --watch" }),
    ("parcelo parcel show", Text { en: "parcelo parcel show SBEC7K2M9QX4T8WD0\nparcelo parcel show PO-4711 -o json", es: "parcelo parcel show SBEC7K2M9QX4T8WD0\nparcelo parcel show PO-4711 -o json" }),
    ("parcelo parcel list", Text { en: "parcelo parcel list --search lopez\nparcelo parcel list --reference PO-4711\nparcelo parcel list --status CUSTOMS_HOLD --country EC\nparcelo parcel list --from 2026-01-01 --to 2026-01-31 --all -o csv > january.csv\nparcelo parcel list --status LABEL_GENERATED --all -o csv > today.csv", es: "parcelo parcel list --search lopez\nparcelo parcel list --reference PO-4711\nparcelo parcel list --status CUSTOMS_HOLD --country EC\nparcelo parcel list --from 2026-01-01 --to 2026-01-31 --all -o csv > enero.csv\nparcelo parcel list --status LABEL_GENERATED --all -o csv > hoy.csv" }),
    ("parcelo label get", Text { en: "parcelo label get SBEC7K2M9QX4T8WD0 -f zpl\nparcelo label get - --dir labels < numbers.txt\nparcelo label get --manifest 176-12345675 --merge flight.pdf", es: "parcelo label get SBEC7K2M9QX4T8WD0 -f zpl\nparcelo label get - --dir etiquetas < números.txt\nparcelo label get --manifest 176-12345675 --merge vuelo.pdf" }),
    ("parcelo label show", Text { en: "parcelo label show SBEC7K2M9QX4T8WD0 --open", es: "parcelo label show SBEC7K2M9QX4T8WD0 --open" }),
    ("parcelo label reprint", Text { en: "parcelo label reprint SBEC7K2M9QX4T8WD0 --reason Torn", es: "parcelo label reprint SBEC7K2M9QX4T8WD0 --reason Rota" }),
    ("parcelo invoice get", Text { en: "parcelo invoice get SBEC7K2M9QX4T8WD0 --dir invoices", es: "parcelo invoice get SBEC7K2M9QX4T8WD0 --dir facturas" }),
    ("parcelo sandbox reset", Text { en: "parcelo sandbox reset --yes --profile test", es: "parcelo sandbox reset --yes --profile prueba" }),
    ("parcelo webhook listen", Text { en: "parcelo webhook listen --port 4242 --forward-to http://127.0.0.1:3000/hooks", es: "parcelo webhook listen --port 4242 --forward-to http://127.0.0.1:3000/avisos" }),
    ("parcelo health", Text { en: "parcelo health --profile live", es: "parcelo health --profile live" }),
    ("parcelo api", Text { en: "parcelo api GET /api/v1/parcels?limit=1\nparcelo api POST /api/v1/tracking/batch --data numbers.json", es: "parcelo api GET /api/v1/parcels?limit=1\nparcelo api POST /api/v1/tracking/batch --data números.json" }),
    ("parcelo config init", Text { en: "parcelo config init\nparcelo config init live --api-key-stdin --base-url https://api.example.com < key.txt", es: "parcelo config init\nparcelo config init live --api-key-stdin --base-url https://api.example.com < clave.txt" }),
    ("parcelo config list", Text { en: "parcelo config list -o csv", es: "parcelo config list -o csv" }),
    ("parcelo config use", Text { en: "parcelo config use live", es: "parcelo config use live" }),
    ("parcelo config path", Text { en: "parcelo config path -o json", es: "parcelo config path -o json" }),
    ("parcelo doctor", Text { en: "parcelo doctor --profile live", es: "parcelo doctor --profile live" }),
    ("parcelo completions", Text { en: "parcelo completions zsh > ~/.zfunc/_parcelo", es: "parcelo completions zsh > ~/.zfunc/_parcelo" }),
    ("parcelo man", Text { en: "parcelo man order create\nparcelo man --dir ~/.local/share/man/man1", es: "parcelo man order create --lang es\nparcelo man --dir ~/.local/share/man/man1" }),
];
