"""Labels through readers that share no code with Parcelo: does everybody see the same?

    python labels.py FOLDER

FOLDER holds corpus.json, for each case in it a PNG, a PDF and a ZPL file, and all of them as
merged.pdf and merged.zpl, as the test `write_corpus` of the server writes them. Needs zxing-cpp, Pillow and numpy; zbarimg, pdftoppm,
pdftotext, pdffonts, pdfinfo, qpdf, gs and mutool; node with zpl-renderer-js.

Every check is a function that returns what is wrong, so that mutants, which must be rejected, go
through the same checks as the labels.
"""

import io
import json
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import zxingcpp
from PIL import Image, ImageFilter

WIDTH, HEIGHT, DENSITY = 812, 1218, 7992
EDGE = 4
BAR_QUIET, QR_QUIET = 10, 4
# Rows of the SANDBOX band, and columns right of any text in it.
BAND = (slice(130, 180), slice(784, 792))
# Columns between the frame and any text, and rows where these hold nothing but it.
GUTTERS = (slice(20, 30), slice(786, 792))
BARE_ROWS = (slice(19, 124), slice(190, 374), slice(390, 476), slice(490, 660), slice(663, 728), slice(985, 1098))
NEAR = 3  # Dots by which two drawings of one letter may differ.
SHRUNK = 0.93  # "Fit to page".


def run(*command, stdin=None):
    return subprocess.run([str(part) for part in command], input=stdin, capture_output=True)


def picture(data):
    return Image.open(io.BytesIO(data)).convert("L")


def black(image):
    return np.asarray(image) < 128


# --- Symbols -------------------------------------------------------------------------------------


def by_zxing(image):
    formats = zxingcpp.barcode_formats_from_str("Code128,QRCode")
    found = zxingcpp.read_barcodes(image, formats=formats, try_downscale=False)
    return {("Code128" if "128" in str(code.format) else "QR"): code.text for code in found}


def by_zbar(image):
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        image.save(file.name)
        only = ["-Sdisable", "-Scode128.enable", "-Sqrcode.enable"]
        said = run("zbarimg", "-q", "--nodbus", *only, file.name).stdout.decode()
    names = {"CODE-128": "Code128", "QR-Code": "QR"}
    pairs = [line.split(":", 1) for line in said.splitlines() if ":" in line]
    return {names.get(name, name): text for name, text in pairs}


def symbol_faults(case, image, where):
    wanted = {"Code128": case["number"], "QR": case["url"]}
    return [
        f"{where}: {reader.__name__} reads {found}"
        for reader in (by_zxing, by_zbar)
        if (found := reader(image)) != wanted
    ]


def whole_dot_faults(case, dots, where):
    """Bars of whole modules, the same in every row, with white to both edges of the sheet."""
    x, y, width, height, module = (case["bars"][k] for k in ("x", "y", "width", "height", "module"))
    band = dots[y : y + height, :WIDTH]
    faults = []
    if (band != band[0]).any():
        faults.append(f"{where}: the bars are not the same in every row")
    changes = np.flatnonzero(np.diff(np.concatenate(([0], band[0].astype(int), [0]))))
    if len(changes) == 0 or (changes[0], changes[-1]) != (x, x + width):
        faults.append(f"{where}: the bars do not stand where they should")
    if (np.diff(changes) % module).any():
        faults.append(f"{where}: a bar or space is not a whole number of modules")
    if min(x, WIDTH - x - width) < BAR_QUIET * module:
        faults.append(f"{where}: fewer than {BAR_QUIET} modules of white beside the bars")
    return faults


def sandbox_faults(case, dots, where):
    marked = dots[BAND].all()
    return [] if marked == case["sandbox"] else [f"{where}: SANDBOX is {marked}"]


def gutter_faults(dots, where):
    """Text keeps to its room, whatever font the reader has."""
    full = any(dots[rows, columns].any() for rows in BARE_ROWS for columns in GUTTERS)
    return [f"{where}: text beyond its room"] if full else []


def spread(dots):
    """What is at most NEAR dots across and down from ink."""
    for _ in range(NEAR):
        wide = np.pad(dots, 1)
        tall = wide[:, :-2] | wide[:, 1:-1] | wide[:, 2:]
        dots = tall[:-2] | tall[1:-1] | tall[2:]
    return dots


def ink_faults(dots, png, where):
    """Everything is drawn where the PNG has it, and nothing besides."""
    ours, theirs = black(picture(png)), dots[:HEIGHT, :WIDTH]
    if ours.shape != theirs.shape:
        return [f"{where}: another size than the PNG"]
    more, less = (theirs & ~spread(ours)).sum(), (ours & ~spread(theirs)).sum()
    return [f"{where}: {more} dots that the PNG lacks, {less} that only it has"] if more or less else []


# --- Formats -------------------------------------------------------------------------------------


def png_faults(case, data):
    size, kind = struct.unpack(">II", data[16:24]), tuple(data[24:26])
    at = data.find(b"pHYs") + 4
    image = picture(data)
    dots = black(image)
    faults = []
    if size != (WIDTH, HEIGHT) or kind != (1, 0):
        return [f"PNG: {size} dots, bit depth and colour {kind}"]
    if struct.unpack(">IIB", data[at : at + 9]) != (DENSITY, DENSITY, 1):
        faults.append("PNG: not 203 dpi")
    if len(data) > 24 * 1024:
        faults.append(f"PNG: {len(data)} bytes")
    inside = dots[EDGE:-EDGE, EDGE:-EDGE]
    if dots.sum() != inside.sum():
        faults.append("PNG: ink at the edge")
    qr = case["qr"]
    near, far = QR_QUIET * qr["module"], qr["side"]
    around = dots[qr["y"] - near : qr["y"] + far + near, qr["x"] - near : qr["x"] + far + near]
    symbol = dots[qr["y"] : qr["y"] + far, qr["x"] : qr["x"] + far]
    if around.sum() != symbol.sum():
        faults.append("PNG: ink in the quiet zone of the QR symbol")
    cells = symbol.reshape(far // qr["module"], qr["module"], far // qr["module"], qr["module"])
    if (cells.all(axis=(1, 3)) != cells.any(axis=(1, 3))).any():
        faults.append("PNG: a module of the QR symbol is not whole")
    faults += whole_dot_faults(case, dots, "PNG") + sandbox_faults(case, dots, "PNG")
    faults += gutter_faults(dots, "PNG")
    return faults + symbol_faults(case, image, "PNG")


def scales(module):
    """What a PDF meets: the printer's own resolution in one bit, a finer screen, "fit to page".

    Bars of two dots are less than two dots wide when shrunk, which no printer of 203 dpi can draw in
    one bit: these need 300 dpi.
    """
    shrunk = (203 if module > 2 else 300) * SHRUNK
    return {"203 dpi, 1 bit": (203, True), "300 dpi, gray": (300, False), "93 %": (shrunk, True)}


def poppler(file, dpi, one_bit):
    mono = ["-mono"] if one_bit else ["-gray"]
    return run("pdftoppm", "-r", dpi, *mono, file).stdout


def ghostscript(file, dpi, one_bit):
    device = "pngmono" if one_bit else "pnggray"
    quiet = ["-q", "-dNOPAUSE", "-dBATCH", "-dSAFER"]
    return run("gs", *quiet, f"-sDEVICE={device}", f"-r{dpi}", "-sOutputFile=-", file).stdout


def mupdf(file, dpi, one_bit):
    bits = ["-A", 0, "-c", "gray"] if one_bit else ["-c", "gray"]
    return run("mutool", "draw", "-q", "-r", dpi, *bits, "-F", "png", "-o", "-", file).stdout


def pdf_faults(case, data, png):
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(data)
        file.flush()
        return paper_faults(case, data, file.name) + render_faults(case, file.name, png)


def paper_faults(case, data, file):
    fonts = run("pdffonts", file).stdout.decode().splitlines()[2:]
    limit = 18 * 1024 if len(fonts) == 2 else 24 * 1024
    faults = [] if len(data) <= limit else [f"PDF: {len(data)} bytes"]
    if (checked := run("qpdf", "--check", file)).returncode != 0:
        faults.append(f"PDF: qpdf says {checked.stdout.decode()}")
    info = run("pdfinfo", file).stdout.decode()
    if not re.search(r"Page size: +288 x 432 pts", info) or not re.search(r"Pages: +1\n", info):
        faults.append("PDF: not one page of 288 x 432 points")
    if b"/PrintScaling/None" not in data:
        faults.append("PDF: scales when printed")
    if len(fonts) not in (2, 3) or any("yes yes yes" not in font for font in fonts):
        faults.append(f"PDF: fonts {fonts}")
    text = joined(run("pdftotext", "-layout", file, "-").stdout.decode())
    faults += [f"PDF: without {line!r}" for line in case["lines"] if joined(line) not in text]
    if ("SANDBOX" in text) != case["sandbox"]:
        faults.append("PDF: SANDBOX is wrong")
    return faults


def joined(text):
    """Without white space, of which every reader puts its own."""
    return "".join(text.split())


def render_faults(case, file, png):
    faults = []
    for render in (poppler, ghostscript, mupdf):
        for name, (dpi, one_bit) in scales(case["bars"]["module"]).items():
            where = f"PDF, {render.__name__}, {name}"
            image = picture(render(file, dpi, one_bit))
            faults += symbol_faults(case, image, where)
            if dpi == 203 and one_bit:
                faults += twin_faults(case, black(image), png, where)
                faults += ink_faults(black(image), png, where)
    return faults


def twin_faults(case, dots, png, where):
    """The bars are those of the PNG, dot for dot."""
    top, bottom = case["bars"]["y"], case["bars"]["y"] + case["bars"]["height"]
    ours, theirs = black(picture(png))[top:bottom, :WIDTH], dots[top:bottom, :WIDTH]
    if ours.shape == theirs.shape and (ours == theirs).all():
        return []
    return [f"{where}: the bars differ from those of the PNG"]


def zpl_faults(case, zpl, rendered, png):
    faults = [] if zpl.isascii() else ["ZPL: not pure ASCII"]
    for command, count in ((b"^XA", 1), (b"^XZ", 1), (b"^CI28", 1), (b"^PW812", 1), (b"^LL1218", 1)):
        if zpl.count(command) != count:
            faults.append(f"ZPL: {zpl.count(command)} times {command.decode()}")
    wanted = f"^BCN,{case['bars']['height']},N,N,N,N^FD>:{case['number']}^FS".encode()
    if wanted not in zpl:
        faults.append("ZPL: the bars are not asked for in subset B")
    drawn = zpl.count(b"^GFA")
    if len(zpl) > (3 * 1024 if drawn == 0 else 6656) and drawn < 2 and not case["crowded"]:
        faults.append(f"ZPL: {len(zpl)} bytes")
    image = picture(rendered)
    dots = black(image)
    faults += whole_dot_faults(case, dots, "ZPL") + twin_faults(case, dots, png, "ZPL")
    faults += gutter_faults(dots, "ZPL")
    return faults + sandbox_faults(case, dots, "ZPL") + symbol_faults(case, image, "ZPL")


def faults_of(folder, case):
    file = Path(folder) / case["name"]
    png, pdf, zpl = (file.with_suffix(f".{kind}").read_bytes() for kind in ("png", "pdf", "zpl"))
    rendered = Path(f"{file}.zpl.png").read_bytes()
    return png_faults(case, png) + pdf_faults(case, pdf, png) + zpl_faults(case, zpl, rendered, png)


# --- Many labels in one file ---------------------------------------------------------------------


def merged_faults(folder, cases):
    """Each page is the label of its case; the ZPL file is the labels one after another."""
    folder = Path(folder)
    yield from merged_pdf_faults(folder, cases, folder / "merged.pdf")
    single = b"".join((folder / case["name"]).with_suffix(".zpl").read_bytes() for case in cases)
    if (folder / "merged.zpl").read_bytes() != single:
        yield "merged ZPL: not the labels in their order"


def merged_pdf_faults(folder, cases, file):
    if (checked := run("qpdf", "--check", file)).returncode != 0:
        yield f"merged PDF: qpdf says {checked.stdout.decode()}"
    info = run("pdfinfo", "-l", -1, file).stdout.decode()
    sizes = re.findall(r"Page +\d+ size: +288 x 432 pts", info)
    if len(sizes) != len(cases):
        yield f"merged PDF: {len(sizes)} pages of 4 by 6 inches for {len(cases)} labels"
        return
    fonts = run("pdffonts", file).stdout.decode().splitlines()[2:]
    if len(fonts) > 3:
        yield f"merged PDF: fonts {fonts}"
    for page, case in enumerate(cases, 1):
        one = ["-f", page, "-l", page]
        text = joined(run("pdftotext", *one, "-layout", file, "-").stdout.decode())
        where = f"merged PDF, page {page}"
        yield from (f"{where}: without {line!r}" for line in case["lines"] if joined(line) not in text)
        image = picture(run("pdftoppm", *one, "-r", 203, "-mono", file).stdout)
        png = (folder / case["name"]).with_suffix(".png").read_bytes()
        yield from symbol_faults(case, image, where)
        yield from twin_faults(case, black(image), png, where)


# --- Mutants: the checks can fail ----------------------------------------------------------------


def as_png(image, mode="1", dpi=203):
    data = io.BytesIO()
    image.convert(mode).save(data, "PNG", dpi=(dpi, dpi))
    return data.getvalue()


def painted(png, box, colour):
    image = picture(png)
    image.paste(colour, box)
    return as_png(image)


def mutants(folder, case):
    """Name and faults of labels that are wrong in one thing each."""
    file = Path(folder) / case["name"]
    png, pdf, zpl = (file.with_suffix(f".{kind}").read_bytes() for kind in ("png", "pdf", "zpl"))
    rendered = Path(f"{file}.zpl.png").read_bytes()
    x, y, module = case["bars"]["x"], case["bars"]["y"], case["bars"]["module"]
    qr = case["qr"]
    other = {**case, "number": case["number"][:-1] + "Z"}
    elsewhere = {**case, "url": case["url"] + "0"}
    live = {**case, "sandbox": not case["sandbox"]}
    blurred = picture(png).filter(ImageFilter.GaussianBlur(5))
    pictures = {
        "blurred": as_png(blurred, "L"),
        "blurred, one bit": as_png(blurred),
        "a dot too fat": painted(png, (x + 2 * module, y, x + 2 * module + 1, y + 176), 0),
        "a row of the bars missing": painted(png, (0, y + 80, WIDTH, y + 81), 255),
        "ink beside the bars": painted(png, (x - 12, y, x - 9, y + 176), 0),
        "ink beside the QR symbol": painted(png, (qr["x"] - 9, qr["y"], qr["x"] - 6, qr["y"] + 90), 0),
        "ink at the edge": painted(png, (0, 0, 1, 1), 0),
        "with text beyond its room": painted(png, (784, 300, 790, 310), 0),
        "without its mark": painted(png, (19, 127, 793, 183), 255),
        "at 300 dpi": as_png(picture(png), dpi=300),
    }
    for name, data in pictures.items():
        yield f"PNG {name}", png_faults(case, data)
    for name, wrong in (("number", other), ("URL", elsewhere), ("mark", live)):
        yield f"PNG, wrong {name}", png_faults(wrong, png)
        yield f"PDF, wrong {name}", pdf_faults(wrong, pdf, png)
        yield f"ZPL, wrong {name}", zpl_faults(wrong, zpl, rendered, png)
    changes = {
        "of another size": (b"[0 0 288 432]", b"[0 0 289 432]"),
        "that scales": (b"/PrintScaling/None", b"/PrintScalinx/None"),
        "that is broken": (b"/Type/Page/", b"/Type/Pagg/"),
    }
    for name, (old, new) in changes.items():
        assert old in pdf, old
        yield f"PDF {name}", pdf_faults(case, pdf.replace(old, new), png)
    missing = {**case, "lines": [*case["lines"], "José"[::-1]]}
    yield "PDF without a line", pdf_faults(missing, pdf, png)
    yield "PDF with other bars", pdf_faults(case, pdf, pictures["a dot too fat"])
    yield "PDF with a line more", pdf_faults(case, pdf, painted(png, (30, 575, 700, 615), 255))
    yield "PDF with a line less", pdf_faults(case, pdf, painted(png, (600, 618, 700, 626), 0))
    yield "ZPL with a command more", zpl_faults(case, zpl + b"^XA^XZ", rendered, png)
    yield "ZPL in UTF-8", zpl_faults(case, zpl + "ñ".encode(), rendered, png)
    beyond = painted(rendered, (784, 300, 790, 310), 0)
    yield "ZPL with text beyond its room", zpl_faults(case, zpl, beyond, png)
    yield "ZPL with other bars", zpl_faults(case, zpl, rendered, pictures["a dot too fat"])


def merged_mutants(folder, cases):
    """The first fault is enough: each page takes a while."""
    swapped = [cases[1], cases[0], *cases[2:]]
    yield "merged with two labels exchanged", next(merged_faults(folder, swapped), None)
    yield "merged with a label left out", next(merged_faults(folder, cases[1:]), None)


def main(folder):
    cases = json.loads((Path(folder) / "corpus.json").read_text())
    script = Path(__file__).with_name("render_zpl.cjs")
    subprocess.run(["node", script, folder], check=True)
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(faults_of, [folder] * len(cases), cases))
    failed = 0
    for case, faults in zip(cases, results):
        failed += bool(faults)
        for fault in faults:
            print(f"{case['name']}: {fault}")
    together = list(merged_faults(folder, cases))
    failed += bool(together)
    for fault in together:
        print(fault)
    survivors = rejected = 0
    for name, faults in [*mutants(folder, cases[0]), *merged_mutants(folder, cases)]:
        survivors += not faults
        rejected += bool(faults)
        if not faults:
            print(f"mutant not rejected: {name}")
    print(f"{rejected} mutants rejected, {survivors} not")
    print(f"{len(cases) + 1 - failed} passed, {failed + survivors} failed")
    return 1 if failed or survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
