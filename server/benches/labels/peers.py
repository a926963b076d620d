"""The same label by Pillow (PNG) and reportlab (PDF): CPU time and size, as rows of the table.

As one would write it with these libraries: their own text, fonts and, in reportlab, bar codes. Pillow
has no bar codes, so its bars and QR modules are rectangles that are known beforehand.
"""

import io
import random
import statistics
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from reportlab.graphics import renderPDF
from reportlab.graphics.barcode import code128, qr
from reportlab.graphics.shapes import Drawing
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas

FONTS = Path(__file__).resolve().parents[2] / "fonts"
NUMBER = "SB-SUCCESS-00010203"
URL = f"https://sandbox.parcelo.example/track/{NUMBER}"
WIDTH, HEIGHT, DPI = 812, 1218, 203
# Baseline, left, size, bold, text: the lines of the label of order.json.
LINES = [
    (76, 32, 52, True, "PARCELO"), (112, 32, 26, False, "CROSS-BORDER / TRANSFRONTERIZO"),
    (104, 505, 84, True, "UIO-170"), (169, 45, 40, True, "SANDBOX  NO VÁLIDO / NOT FOR SHIPMENT"),
    (212, 32, 20, True, "FROM / REMITENTE"),
    (242, 32, 24, True, "Shenzhen Brillante Trading Co. Ltd. — Wei Chen"),
    (272, 32, 20, False, "Rm 1203, Bldg 7, Nanshan Science Park, Keji South Rd 12"),
    (302, 32, 26, False, "Shenzhen, Guangdong 518057"), (332, 32, 26, False, "CHINA (CN)"),
    (362, 32, 26, False, "+86 755 8888 1234"), (410, 32, 20, True, "TO / DESTINATARIO"),
    (452, 32, 44, True, "José Ángel Muñoz Güiñazú"), (490, 32, 36, False, "Av. Amazonas N34-451 y"),
    (528, 32, 36, False, "Atahualpa, Edificio Ñandú, Piso 7, Oficina 702"),
    (566, 32, 36, False, "170150 Quito, Pichincha"), (604, 32, 36, False, "ECUADOR (EC)   CÉDULA 1712345678"),
    (642, 32, 36, False, "+593 99 123 4567"), (684, 32, 18, True, "WEIGHT / PESO"),
    (720, 32, 34, True, "1.25 kg"), (684, 212, 18, True, "PCS / PZAS"), (720, 212, 34, True, "1 / 1"),
    (684, 332, 18, True, "DATE / FECHA"), (720, 332, 32, True, "2026-11-21"),
    (684, 512, 18, True, "REF / REFERENCIA"), (720, 512, 34, True, "ORD-2026-000123"),
    (966, 203, 42, True, NUMBER), (1004, 32, 20, True, "CUSTOMS / ADUANA"),
    (1004, 388, 16, True, "QTY / CANT"), (1004, 480, 18, True, "HS / SA"), (1004, 600, 18, True, "ORIG."),
    (1004, 671, 18, True, "VALUE / VALOR"), (1032, 32, 24, False, "Teléfono móvil, funda de silicona"),
    (1032, 452, 24, False, "2"), (1032, 480, 24, False, "392690"), (1032, 600, 24, False, "CN"),
    (1032, 686, 24, False, "USD 24.00"), (1060, 32, 24, False, "Camiseta de algodón niño"),
    (1060, 452, 24, False, "3"), (1060, 480, 24, False, "610910"), (1060, 600, 24, False, "CN"),
    (1060, 686, 24, False, "USD 30.00"), (1088, 32, 24, False, "Cable USB-C"), (1088, 452, 24, False, "1"),
    (1088, 480, 24, False, "854442"), (1088, 600, 24, False, "CN"), (1088, 698, 24, False, "USD 5.50"),
    (1146, 32, 24, True, "TOTAL 6 items / artículos   1.25 kg   USD 59.50"),
    (1184, 32, 24, False, "Entregar en portería; llamar antes. No dejar con vecinos."),
]
RULES = [(16, y, 780, 3) for y in (16, 124, 183, 660, 730, 980, 1154, 1199)]
RULES += [(x, 16, 3, 717) for x in (16, 793)] + [(x, 980, 3, 222) for x in (16, 793)]
RULES += [(19, 127, 774, 56)]
DICE = random.Random(1)
BARS = [(40 + 3 * module, 748, 3, 176) for module in range(244) if DICE.random() < 0.5]
MODULES = [(538 + 6 * (i % 37), 223 + 6 * (i // 37), 6, 6) for i in range(37 * 37) if DICE.random() < 0.5]

names = {False: "RobotoCondensed-Regular", True: "RobotoCondensed-Bold"}
files = {bold: str(FONTS / f"{name}.ttf") for bold, name in names.items()}
kept = {(bold, size): ImageFont.truetype(files[bold], size) for _, _, size, bold, _ in LINES}
for bold, name in names.items():
    pdfmetrics.registerFont(TTFont(name, files[bold]))


def pillow():
    image = Image.new("1", (WIDTH, HEIGHT), 1)
    draw = ImageDraw.Draw(image)
    for x, y, w, h in RULES + BARS + MODULES:
        draw.rectangle((x, y, x + w - 1, y + h - 1), fill=0)
    for y, x, size, bold, text in LINES:
        draw.text((x, y), text, font=kept[bold, size], fill=int(y == 169), anchor="ls")
    file = io.BytesIO()
    image.save(file, "PNG", dpi=(DPI, DPI))
    return file.getvalue()


def reportlab():
    file = io.BytesIO()
    page = canvas.Canvas(file, pagesize=(288, 432), invariant=True)
    page.scale(72 / DPI, 72 / DPI)
    for x, y, w, h in RULES:
        page.rect(x, HEIGHT - y - h, w, h, stroke=0, fill=1)
    for y, x, size, bold, text in LINES:
        page.setFillGray(int(y == 169))
        page.setFont(names[bold], size)
        page.drawString(x, HEIGHT - y, text)
    page.setFillGray(0)
    code128.Code128(NUMBER, barWidth=3, barHeight=176, quiet=False).drawOn(page, 40, HEIGHT - 924)
    symbol = qr.QrCodeWidget(URL, barLevel="Q", barWidth=258, barHeight=258)
    drawing = Drawing(258, 258)
    drawing.add(symbol)
    renderPDF.draw(drawing, page, 520, HEIGHT - 462)
    page.save()
    return file.getvalue()


def milliseconds(make, times=20):
    before = time.process_time()
    for _ in range(times):
        make()
    return (time.process_time() - before) * 1e3 / times


figures = {make: [] for make in (pillow, reportlab)}
for _ in range(15):
    for make, found in figures.items():
        found.append(milliseconds(make))
for kind, make in (("PNG", pillow), ("PDF", reportlab)):
    median, least = statistics.median(figures[make]), min(figures[make])
    print(f"| {kind} | {make.__name__} | {median:.3f} | {least:.3f} | {len(make())} |")
