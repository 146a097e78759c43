from steelyard.cli import main

main()
