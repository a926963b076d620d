// Renders every ZPL file of a folder beside it as NAME.zpl.png: node render_zpl.cjs FOLDER
const fs = require("node:fs");
const path = require("node:path");
const { ready } = require("zpl-renderer-js");

const folder = process.argv[2];
const [WIDTH_MM, HEIGHT_MM, DOTS_PER_MM] = [101.6, 152.4, 8];

ready.then(async ({ api }) => {
  for (const name of fs.readdirSync(folder).filter((name) => name.endsWith(".zpl"))) {
    const file = path.join(folder, name);
    const zpl = fs.readFileSync(file, "ascii");
    const png = await api.zplToBase64Async(zpl, WIDTH_MM, HEIGHT_MM, DOTS_PER_MM);
    fs.writeFileSync(`${file}.png`, Buffer.from(png, "base64"));
  }
  process.exit(0);
});
