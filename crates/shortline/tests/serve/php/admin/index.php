<?php
echo 'admin of ', $_SERVER['SCRIPT_NAME'], ' at ', $_SERVER['PATH_INFO'] ?? 'the top', "\n";
