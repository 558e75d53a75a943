<?php
// A small site as PHP programs are written: one front controller, addresses without `.php`, forms, uploads, sessions.
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$place = explode('/', trim($path, '/'));
switch ($place[0]) {
    case '':
        echo "<h1>home</h1>\n";
        break;
    case 'hello':
        echo 'hello ', htmlspecialchars(urldecode($place[1])), ', page ', $_GET['page'] ?? '1', "\n";
        break;
    case 'page':
        echo '<!doctype html><html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><title>A page</title>',
            '<link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css">',
            '<h1 id="hello">hello ', htmlspecialchars(urldecode($place[1])), ', page ', (int) ($_GET['page'] ?? 1), '</h1>',
            '<p id="styled"></p><script>document.getElementById("styled").textContent =',
            ' document.styleSheets[0].cssRules.length > 0 ? "styled" : "plain";</script>', "\n";
        break;
    case 'form':
        echo 'you are ', htmlspecialchars($_POST['name']), "\n";
        break;
    case 'upload':
        $file = $_FILES['file'];
        echo $file['name'], ' ', $file['size'], ' ', sha1_file($file['tmp_name']), "\n";
        break;
    case 'body':
        $body = file_get_contents('php://input');
        echo $_SERVER['REQUEST_METHOD'], ' ', strlen($body), ' ', sha1($body), ' of ', $_SERVER['CONTENT_LENGTH'], "\n";
        break;
    case 'moved':
        header('Location: /hello/there');
        break;
    case 'login':
        session_start();
        $_SESSION['user'] = $_POST['name'];
        setcookie('theme', 'dark');
        header('Location: /account', true, 303);
        break;
    case 'account':
        session_start();
        echo 'account of ', $_SESSION['user'] ?? 'nobody', ', ', $_COOKIE['theme'] ?? 'light', "\n";
        break;
    case 'download':
        // Of a length that nobody knows.
        header('Content-Type: application/octet-stream');
        $piece = str_repeat('0123456789abcdef', 4096);
        for ($left = (int) $place[1]; $left > 0; $left -= 65536) {
            echo $left < 65536 ? substr($piece, 0, $left) : $piece;
            flush();
        }
        break;
    case 'short':
        header('Content-Length: 1000');
        echo 'not all of it';
        break;
    case 'complain':
        error_log("first line\nsecond line of " . $place[1]);
        echo "ok\n";
        break;
    case 'server':
        header('Content-Type: application/json');
        echo json_encode($_SERVER);
        break;
    default:
        http_response_code(404);
        echo "no such page here\n";
}
