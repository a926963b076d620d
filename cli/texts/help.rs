//! The help: what each command and argument is for, the names of values, and the exit codes.

use super::Text;

/// The help of commands, by path.
#[rustfmt::skip]
pub(crate) const COMMAND_HELP: &[(&str, Text)] = &[
    ("parcelo", Text { en: "Ship parcels across borders: orders, labels, manifests, tracking", es: "Enviar paquetes internacionales: pedidos, etiquetas, manifiestos, rastreo" }),
    ("parcelo order", Text { en: "Create, validate and void orders", es: "Crear, validar y anular pedidos" }),
    ("parcelo order create", Text { en: "Create an order from a JSON file, and optionally save its label", es: "Crear un pedido a partir de un archivo JSON y, opcionalmente, guardar su etiqueta" }),
    ("parcelo order void", Text { en: "Void orders before they are shipped", es: "Anular pedidos antes de que se envíen" }),
    ("parcelo order validate", Text { en: "Validate orders offline, by the service's own rules", es: "Validar pedidos sin conexión, con las reglas del propio servicio" }),
    ("parcelo order template", Text { en: "Print a sample order to edit, or a copy of an earlier order", es: "Mostrar un pedido de ejemplo para editarlo, o una copia de un pedido anterior" }),
    ("parcelo manifest", Text { en: "Submit and show manifests: parcels under an air waybill", es: "Enviar y mostrar manifiestos: paquetes con una guía aérea" }),
    ("parcelo manifest submit", Text { en: "Submit a manifest: all of its parcels or none", es: "Enviar un manifiesto: todos sus paquetes o ninguno" }),
    ("parcelo manifest show", Text { en: "Show a manifest", es: "Mostrar un manifiesto" }),
    ("parcelo track", Text { en: "Show where parcels are", es: "Mostrar dónde están los paquetes" }),
    ("parcelo parcel", Text { en: "Find parcels", es: "Buscar paquetes" }),
    ("parcelo parcel show", Text { en: "Show one parcel by its number, its reference or a part of them", es: "Mostrar un paquete por su número, su referencia o una parte de ellos" }),
    ("parcelo parcel list", Text { en: "List parcels, newest first", es: "Listar paquetes, los más recientes primero" }),
    ("parcelo label", Text { en: "Save, show and reprint labels", es: "Guardar, mostrar y reimprimir etiquetas" }),
    ("parcelo label get", Text { en: "Save label files", es: "Guardar archivos de etiquetas" }),
    ("parcelo label show", Text { en: "Show a label's text and details", es: "Mostrar el texto y los datos de una etiqueta" }),
    ("parcelo label reprint", Text { en: "Create a new version of a label, marked as a reprint", es: "Crear una versión nueva de una etiqueta, marcada como reimpresión" }),
    ("parcelo invoice", Text { en: "Save commercial invoices", es: "Guardar facturas comerciales" }),
    ("parcelo invoice get", Text { en: "Save commercial invoices as PDF, with every item of the order, for customs", es: "Guardar facturas comerciales en PDF, con todos los artículos del pedido, para la aduana" }),
    ("parcelo sandbox", Text { en: "Manage the sandbox", es: "Administrar el entorno de pruebas" }),
    ("parcelo sandbox reset", Text { en: "Delete all orders, labels, manifests and tracking data of the sandbox", es: "Borrar todos los pedidos, etiquetas, manifiestos y datos de rastreo del entorno de pruebas" }),
    ("parcelo health", Text { en: "Check the API key and show its permissions", es: "Verificar la clave de API y mostrar sus permisos" }),
    ("parcelo order import", Text { en: "Create the orders of a CSV or NDJSON file, and save their labels", es: "Crear los pedidos de un archivo CSV o NDJSON y guardar sus etiquetas" }),
    ("parcelo webhook", Text { en: "Receive webhooks", es: "Recibir webhooks" }),
    ("parcelo webhook listen", Text { en: "Receive webhooks on this machine: verify, print and forward them", es: "Recibir webhooks en esta máquina: verificarlos, mostrarlos y reenviarlos" }),
    ("parcelo api", Text { en: "Call any path of the API with the key and safe retries", es: "Llamar a cualquier ruta de la API con la clave y reintentos seguros" }),
    ("parcelo config", Text { en: "Create, list and select profiles: address, key, language, output", es: "Crear, listar y seleccionar perfiles: dirección, clave, idioma, salida" }),
    ("parcelo config init", Text { en: "Create a profile; prompts for the API key, or reads it with --api-key-stdin", es: "Crear un perfil; pide la clave de API o la lee con --api-key-stdin" }),
    ("parcelo config list", Text { en: "List profiles, without their keys", es: "Listar los perfiles, sin sus claves" }),
    ("parcelo config use", Text { en: "Select the current profile", es: "Seleccionar el perfil actual" }),
    ("parcelo config path", Text { en: "Print the path of the configuration file", es: "Mostrar la ruta del archivo de configuración" }),
    ("parcelo doctor", Text { en: "Check profile, address, DNS, TLS, clock, key and limits", es: "Verificar perfil, dirección, DNS, TLS, reloj, clave y límites" }),
    ("parcelo completions", Text { en: "Generate shell completions", es: "Generar el autocompletado de un intérprete de comandos" }),
    ("parcelo man", Text { en: "Generate manual pages", es: "Generar páginas de manual" }),
];

/// The help of arguments, by id.
#[rustfmt::skip]
pub(crate) const ARGUMENT_HELP: &[(&str, Text)] = &[
    ("file", Text { en: "Order as JSON; - reads standard input", es: "Pedido en JSON; - lee la entrada estándar" }),
    ("files", Text { en: "Orders as JSON: one, an array, or one per line; - reads standard input", es: "Pedidos en JSON: uno, una lista o uno por línea; - lee la entrada estándar" }),
    ("label", Text { en: "Save the label to this file", es: "Guardar la etiqueta en este archivo" }),
    ("format", Text { en: "Label format: pdf, zpl or png [default: from the file's extension, else pdf]", es: "Formato de la etiqueta: pdf, zpl o png [por defecto: según la extensión del archivo; si no, pdf]" }),
    ("label_format", Text { en: "Label format: pdf, zpl or png [default: pdf]", es: "Formato de la etiqueta: pdf, zpl o png [por defecto: pdf]" }),
    ("country", Text { en: "Destination of the sample: ISO code of a country [default: EC]", es: "Destino del ejemplo: código ISO de un país [por defecto: EC]" }),
    ("numbers", Text { en: "Tracking numbers, or a file with one per line, such as numbers.txt; - reads standard input", es: "Números de rastreo, o un archivo con uno por línea, como numeros.txt; - lee la entrada estándar" }),
    ("number", Text { en: "Tracking number", es: "Número de rastreo" }),
    ("manifest_id", Text { en: "The manifest's ID (man_…) or its air waybill", es: "Identificador del manifiesto (man_…) o su guía aérea" }),
    ("reason", Text { en: "Reason, at most 255 characters", es: "Motivo, como máximo 255 caracteres" }),
    ("idempotency_key", Text { en: "Idempotency key, so that a retry is not executed twice; to retry, pass the key that was shown [default: a new one]", es: "Clave de idempotencia, para que un reintento no se ejecute dos veces; para reintentar, use la clave que se mostró [por defecto: una nueva]" }),
    ("awb", Text { en: "Air waybill number, for example 176-12345675", es: "Número de guía aérea, por ejemplo 176-12345675" }),
    ("flight", Text { en: "Flight, for example EK213", es: "Vuelo, por ejemplo EK213" }),
    ("departure", Text { en: "Departure date, for example 2026-01-11", es: "Fecha de salida, por ejemplo 2026-01-11" }),
    ("from", Text { en: "Departure airport, for example MIA", es: "Aeropuerto de salida, por ejemplo MIA" }),
    ("to", Text { en: "Arrival airport, for example UIO", es: "Aeropuerto de llegada, por ejemplo UIO" }),
    ("reference", Text { en: "Your reference, at most 100 characters", es: "Su referencia, como máximo 100 caracteres" }),
    ("search", Text { en: "Only parcels found by this: words of the receiver's name, or the beginning or the last 4 or more characters of a number, reference or air waybill", es: "Solo paquetes que coinciden con este texto: palabras del nombre del destinatario, o el comienzo o los últimos 4 o más caracteres de un número, una referencia o una guía aérea" }),
    ("listed_reference", Text { en: "Only parcels whose reference or order ID begins with this, or ends with these 4 or more characters", es: "Solo paquetes cuya referencia o cuyo identificador de pedido empieza con este texto, o termina con estos 4 o más caracteres" }),
    ("wanted", Text { en: "Tracking number or reference, or a part of it as for parcel list --search", es: "Número de rastreo o referencia, o una parte como en parcel list --search" }),
    ("status", Text { en: "Only parcels with this status, for example IN_TRANSIT", es: "Solo paquetes con este estado, por ejemplo IN_TRANSIT" }),
    ("copied", Text { en: "Copy the order of this parcel instead", es: "Copiar, en cambio, el pedido de este paquete" }),
    ("created_from", Text { en: "Only parcels created on this day (UTC) or later, for example 2026-01-31", es: "Solo paquetes creados ese día (UTC) o después, por ejemplo 2026-01-31" }),
    ("created_to", Text { en: "Only parcels created on this day (UTC) or before", es: "Solo paquetes creados ese día (UTC) o antes" }),
    ("destination", Text { en: "Only parcels to this country (ISO code), for example EC", es: "Solo paquetes con destino a este país (código ISO), por ejemplo EC" }),
    ("limit", Text { en: "Parcels per page, 1-100 [default: 20; with --all 100]", es: "Paquetes por página, 1-100 [por defecto: 20; con --all 100]" }),
    ("page", Text { en: "Page number [default: 1]", es: "Número de página [por defecto: 1]" }),
    ("all", Text { en: "All pages", es: "Todas las páginas" }),
    ("yes", Text { en: "Do not ask for confirmation", es: "No pedir confirmación" }),
    ("history", Text { en: "Show each parcel's history", es: "Mostrar el historial de cada paquete" }),
    ("dir", Text { en: "Directory for the files, or - for standard output [default: .]", es: "Directorio para los archivos, o - para la salida estándar [por defecto: .]" }),
    ("manifest", Text { en: "All parcels of this manifest, by its ID (man_…) or its air waybill, in its order", es: "Todos los paquetes de este manifiesto, por su identificador (man_…) o su guía aérea, en su orden" }),
    ("merge", Text { en: "Save all labels in this one file, in their order: .pdf with a page for each, or .zpl", es: "Guardar todas las etiquetas en este único archivo, en su orden: .pdf con una página para cada una, o .zpl" }),
    ("output", Text { en: "Output format: table, json, ndjson, csv or numbers (tracking numbers, one per line); with json and ndjson errors are JSON too [env: PARCELO_OUTPUT; default: table]", es: "Formato de salida: table, json, ndjson, csv o numbers (números de rastreo, uno por línea); con json y ndjson los errores también son JSON [entorno: PARCELO_OUTPUT; por defecto: table]" }),
    ("lang", Text { en: "Language: en or es [env: PARCELO_LANG; default: from LC_ALL, LC_MESSAGES, LANG]", es: "Idioma: en o es [entorno: PARCELO_LANG; por defecto: según LC_ALL, LC_MESSAGES, LANG]" }),
    ("color", Text { en: "Colours: auto, always or never [default: auto: on a terminal, unless NO_COLOR is set]", es: "Colores: auto, always o never [por defecto: auto: en una terminal, salvo que NO_COLOR esté definida]" }),
    ("base_url", Text { en: "Service address [env: PARCELO_BASE_URL]", es: "Dirección del servicio [entorno: PARCELO_BASE_URL]" }),
    ("api_key_stdin", Text { en: "Read the API key from standard input instead of PARCELO_API_KEY", es: "Leer la clave de API de la entrada estándar en lugar de PARCELO_API_KEY" }),
    ("verbose", Text { en: "Show attempts and waits", es: "Mostrar intentos y esperas" }),
    ("help", Text { en: "Print help", es: "Mostrar la ayuda" }),
    ("version", Text { en: "Print version", es: "Mostrar la versión" }),
    ("rows", Text { en: "CSV with a header row (separated by , ; | or tabs), or one JSON order per line; - reads standard input", es: "CSV con una fila de encabezados (separado por , ; | o tabuladores), o un pedido JSON por línea; - lee la entrada estándar" }),
    ("labels", Text { en: "Directory for labels, journal and results; created if necessary", es: "Directorio para las etiquetas, el registro y los resultados; se crea si hace falta" }),
    ("preset", Text { en: "The file is a shop's export: shopify or woocommerce", es: "El archivo es la exportación de una tienda: shopify o woocommerce" }),
    ("column_map", Text { en: "Column map (TOML): which column of the CSV file fills which field, and default values", es: "Mapa de columnas (TOML): qué columna del archivo CSV llena qué campo, y valores por defecto" }),
    ("map_template", Text { en: "Print a column map to begin with, from the file's headings or the preset", es: "Mostrar un mapa de columnas para empezar, según los encabezados del archivo o la tienda" }),
    ("sender", Text { en: "Sender (JSON or TOML) of the orders that have none [default: the profile's]", es: "Remitente (JSON o TOML) de los pedidos que no lo tienen [por defecto: el del perfil]" }),
    ("resume", Text { en: "Resume an interrupted import of this file", es: "Continuar una importación interrumpida de este archivo" }),
    ("encoding", Text { en: "What the file is written in: utf-8, windows-1252 or utf-16; recognised if absent", es: "Codificación del archivo: utf-8, windows-1252 o utf-16; se detecta si no se indica" }),
    ("key_rotated", Text { en: "With --resume: the API key's secret was rotated after the import was started", es: "Con --resume: la clave de API recibió un secreto nuevo después de iniciar la importación" }),
    ("concurrency", Text { en: "Rows in progress at once, 1-64 [default: 16]", es: "Filas en curso a la vez, 1-64 [por defecto: 16]" }),
    ("all_or_nothing", Text { en: "Create nothing unless every row is valid", es: "No crear nada si alguna fila no es válida" }),
    ("quiet", Text { en: "Do not show progress", es: "No mostrar el progreso" }),
    ("csv", Text { en: "Print a CSV file for order import instead", es: "Mostrar, en cambio, un archivo CSV para order import" }),
    ("watch", Text { en: "Watch until every parcel is delivered, failed, returned or voided: a redrawn table on a terminal, elsewhere a line for each change", es: "Seguir hasta que todos los paquetes estén entregados, con entrega fallida, devueltos o anulados: una tabla que se redibuja en una terminal; si no, una línea por cambio" }),
    ("every", Text { en: "Seconds between updates, 1-3600 [default: 15]", es: "Segundos entre consultas, 1-3600 [por defecto: 15]" }),
    ("set", Text { en: "Set a field of the order, for example receiver.address.city=Quito; makes the file optional", es: "Dar un valor a un campo del pedido, por ejemplo receiver.address.city=Quito; así el archivo es opcional" }),
    ("open", Text { en: "Open the label in the program that this system uses for PDF files", es: "Abrir la etiqueta en el programa que este sistema usa para archivos PDF" }),
    ("profile", Text { en: "Profile to use [env: PARCELO_PROFILE; default: the one selected with config use]", es: "Perfil que se usa [entorno: PARCELO_PROFILE; por defecto: el seleccionado con config use]" }),
    ("dry_run", Text { en: "Send nothing: print the requests as curl, with the key masked, except those that depend on a response; order import checks the rows instead", es: "No enviar nada: mostrar las solicitudes como curl, con la clave oculta, salvo las que dependen de una respuesta; order import, en cambio, revisa las filas" }),
    ("method", Text { en: "HTTP method, for example GET", es: "Método HTTP, por ejemplo GET" }),
    ("path", Text { en: "Path, with any query string, for example /api/v1/parcels?limit=1", es: "Ruta con sus parámetros, por ejemplo /api/v1/parcels?limit=1" }),
    ("data", Text { en: "JSON to send; - reads standard input", es: "JSON que se envía; - lee la entrada estándar" }),
    ("port", Text { en: "Port to listen on, on this machine only [default: 4242]", es: "Puerto en el que escuchar, solo en esta máquina [por defecto: 4242]" }),
    ("secret", Text { en: "Webhook secret, or - for standard input; prefer PARCELO_WEBHOOK_SECRET, which other users cannot see", es: "Secreto del webhook, o - para la entrada estándar; mejor PARCELO_WEBHOOK_SECRET, que otros usuarios no pueden ver" }),
    ("forward_to", Text { en: "Forward each event unchanged to this address, and return its response to the service", es: "Reenviar cada evento sin cambios a esta dirección y devolver su respuesta al servicio" }),
    ("new_profile", Text { en: "Profile name [default: default]", es: "Nombre del perfil [por defecto: default]" }),
    ("other_profile", Text { en: "Profile name", es: "Nombre del perfil" }),
    ("force", Text { en: "Replace an existing profile", es: "Reemplazar un perfil existente" }),
    ("shell", Text { en: "bash, zsh, fish, elvish or powershell", es: "bash, zsh, fish, elvish o powershell" }),
    ("man_dir", Text { en: "Write all pages as files to this directory", es: "Escribir todas las páginas como archivos en este directorio" }),
    ("command", Text { en: "Command whose page is printed, for example order create", es: "Comando cuya página se muestra, por ejemplo order create" }),
];

/// The names of values, by their English name.
#[rustfmt::skip]
pub(crate) const VALUE_NAMES: &[(&str, Text)] = &[
    ("FILE", Text { en: "FILE", es: "ARCHIVO" }),
    ("FILE|-", Text { en: "FILE|-", es: "ARCHIVO|-" }),
    ("WHEN", Text { en: "WHEN", es: "CUÁNDO" }),
    ("SHOP", Text { en: "SHOP", es: "TIENDA" }),
    ("FORMAT", Text { en: "FORMAT", es: "FORMATO" }),
    ("CODE", Text { en: "CODE", es: "CÓDIGO" }),
    ("NUMBER", Text { en: "NUMBER", es: "NÚMERO" }),
    ("NUMBER|REFERENCE", Text { en: "NUMBER|REFERENCE", es: "NÚMERO|REFERENCIA" }),
    ("REFERENCE", Text { en: "REFERENCE", es: "REFERENCIA" }),
    ("NUMBER|FILE|-", Text { en: "NUMBER|FILE|-", es: "NÚMERO|ARCHIVO|-" }),
    ("MANIFEST", Text { en: "MANIFEST", es: "MANIFIESTO" }),
    ("AWB", Text { en: "AWB", es: "GUÍA" }),
    ("FLIGHT", Text { en: "FLIGHT", es: "VUELO" }),
    ("DATE", Text { en: "DATE", es: "FECHA" }),
    ("AIRPORT", Text { en: "AIRPORT", es: "AEROPUERTO" }),
    ("STATUS", Text { en: "STATUS", es: "ESTADO" }),
    ("TEXT", Text { en: "TEXT", es: "TEXTO" }),
    ("KEY", Text { en: "KEY", es: "CLAVE" }),
    ("N", Text { en: "N", es: "N" }),
    ("DIR|-", Text { en: "DIR|-", es: "DIRECTORIO|-" }),
    ("LANGUAGE", Text { en: "LANGUAGE", es: "IDIOMA" }),
    ("URL", Text { en: "URL", es: "URL" }),
    ("DIR", Text { en: "DIR", es: "DIRECTORIO" }),
    ("FIELD=VALUE", Text { en: "FIELD=VALUE", es: "CAMPO=VALOR" }),
    ("METHOD", Text { en: "METHOD", es: "MÉTODO" }),
    ("PATH", Text { en: "PATH", es: "RUTA" }),
    ("PORT", Text { en: "PORT", es: "PUERTO" }),
    ("SECRET|-", Text { en: "SECRET|-", es: "SECRETO|-" }),
    ("NAME", Text { en: "NAME", es: "NOMBRE" }),
    ("SHELL", Text { en: "SHELL", es: "INTÉRPRETE" }),
    ("COMMAND", Text { en: "COMMAND", es: "COMANDO" }),
    ("SECONDS", Text { en: "SECONDS", es: "SEGUNDOS" }),
];

/// The exit codes, at the end of the main help.
pub(crate) const EXIT_CODES: Text = Text {
    en: "\
Exit codes:
    0  success
    1  internal error, or the results could not be written
    2  invalid command line or file
    3  invalid order or tracking number
    4  API key missing, invalid, or not allowed to ship to the country
    5  not found
    6  conflict with existing data
    7  rate limit exceeded
    8  request failed, nothing was executed: no connection, no response, or a service error
    9  outcome unknown; the hint says how to run it again safely
   10  partly failed
   11  several parcels match: one of them is to be chosen
  130  interrupted",
    es: "\
Códigos de salida:
    0  correcto
    1  error interno, o no se pudieron escribir los resultados
    2  línea de comandos o archivo no válidos
    3  pedido o número de rastreo no válido
    4  falta la clave de API, no es válida o no permite enviar a ese país
    5  no encontrado
    6  conflicto con datos existentes
    7  límite de solicitudes superado
    8  la solicitud falló y no se ejecutó nada: sin conexión, sin respuesta o error del servicio
    9  resultado desconocido; la sugerencia indica cómo repetirlo sin riesgo
   10  falló en parte
   11  coinciden varios paquetes: hay que elegir uno
  130  interrumpido",
};
