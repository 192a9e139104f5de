from wader.cli import main

main()
